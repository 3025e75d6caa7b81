import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'
import { testWith } from '../support/tools.ts'

/** The provided alerts of a cluster, over series as `promtool test rules` describes them. */

const ALERTS = join(import.meta.dir, '../../docs/operations/alerts.yml')
const INSTANCE = 'host-b:3000'

interface Case {
  name: string
  /** Without the instance. */
  series: string
  /** A value each minute. */
  values: string
  alert: string
  /** Minutes after which the alert does not fire yet, and after which it does. */
  quietAt: number
  firesAt?: number
}

const CASES: readonly Case[] = [
  {
    name: 'a host that has stopped because its data differ',
    series: 'hopcode_cluster_following',
    values: '1x2 0x10',
    alert: 'HopcodeClusterNotFollowing',
    quietAt: 3,
    firesAt: 5,
  },
  {
    name: 'a host that misses PostgreSQL for one scrape',
    series: 'hopcode_cluster_following',
    values: '1x2 0 1x20',
    alert: 'HopcodeClusterNotFollowing',
    quietAt: 4,
  },
  {
    name: 'a host that falls behind',
    series: 'hopcode_cluster_lag_entries',
    values: '0+500x20',
    alert: 'HopcodeClusterLagging',
    quietAt: 7,
    firesAt: 9,
  },
  {
    name: 'a host that catches up',
    series: 'hopcode_cluster_lag_entries',
    values: '4000-1000x4 0x20',
    alert: 'HopcodeClusterLagging',
    quietAt: 6,
  },
  {
    name: 'changes that reach other hosts late, two a second',
    series: 'hopcode_cluster_late_total',
    values: '0+120x30',
    alert: 'HopcodeClusterLate',
    quietAt: 9,
    firesAt: 15,
  },
  {
    name: 'a late change now and then',
    series: 'hopcode_cluster_late_total',
    values: '0+6x30',
    alert: 'HopcodeClusterLate',
    quietAt: 15,
  },
]

/** An input of `promtool test rules`, which is YAML and thus may be JSON. */
function inputOf({ series, values, alert, quietAt, firesAt }: Case): string {
  const expected = (minutes: number, alerts: readonly object[]) => ({
    eval_time: `${minutes}m`,
    alertname: alert,
    exp_alerts: alerts,
  })
  const tests = [expected(quietAt, [])]
  if (firesAt !== undefined) tests.push(expected(firesAt, [FIRING[alert] ?? {}]))
  const input_series = [{ series: `${series}{instance="${INSTANCE}"}`, values }]
  return JSON.stringify({
    rule_files: [ALERTS],
    evaluation_interval: '1m',
    tests: [{ interval: '1m', input_series, alert_rule_test: tests }],
  })
}

/** What the alerts say when they fire. */
const FIRING: Readonly<Record<string, object>> = {
  HopcodeClusterNotFollowing: {
    exp_labels: { severity: 'critical', instance: INSTANCE },
    exp_annotations: {
      summary: 'A host does not follow the log of its cluster',
      description:
        'PostgreSQL does not answer, or the host has stopped. hopcode cluster status says which. Redirects continue.',
    },
  },
  HopcodeClusterLagging: {
    exp_labels: { severity: 'warning', instance: INSTANCE },
    exp_annotations: {
      summary: 'A host applies the log slower than others write it',
      description: `${INSTANCE} is 4500 entries behind.`,
    },
  },
  HopcodeClusterLate: {
    exp_labels: { severity: 'warning', instance: INSTANCE },
    exp_annotations: {
      summary: 'Changes do not reach all hosts in time',
      description: '2 responses a second were sent before all live hosts had applied the change.',
    },
  },
}

testWith('promtool').each([...CASES])('$name: $alert fires when it should', (one) => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'input.yml')
  writeFileSync(file, inputOf(one))
  const { exitCode, stdout, stderr } = Bun.spawnSync(['promtool', 'test', 'rules', file])
  expect([exitCode, exitCode === 0 ? '' : `${stdout}${stderr}`]).toEqual([0, ''])
})
