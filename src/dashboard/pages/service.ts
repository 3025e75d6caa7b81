import { formatBytes } from '../../lib/bytes.ts'
import { DAY, HOUR, isoTime, MINUTE, parseIsoTime, SECOND } from '../../lib/clock.ts'
import { type Html, html } from '../../lib/html.ts'
import { VERSION } from '../../lib/version.ts'
import { maintenanceSetting } from '../../maintenance/mode.ts'
import type { Vitals } from '../../status/vitals.ts'
import { ownerOf, type PageContext } from '../auth/guard.ts'
import {
  CERTIFICATE_MESSAGES,
  certificateCard,
  RETRY_PATH,
  retryCertificate,
} from '../cards/certificate.ts'
import type { DashboardDeps } from '../deps.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { htmlResponse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type Form, typed } from '../ui/form.ts'
import { liveRegion } from '../ui/hit-chart.ts'
import { page, wantsFragment } from '../ui/layout.ts'

const PATH = '/app/service'
const SETTINGS = `${PATH}/settings`
/** A longer maintenance is probably a mistyped date. */
const MAINTENANCE_MAX_MS = 30 * DAY

/** Health, maintenance and the age of the backup, for the owner. */
export const servicePages = signedInPages({
  'GET /app/service': {
    role: 'owner',
    offers: [
      { label: 'Service', place: 'navigation', words: 'health' },
      { label: 'Health', section: 'service' },
    ],
    run: (context) =>
      wantsFragment(context.request) ? htmlResponse(health(context.deps)) : servicePage(context),
  },
  'POST /app/service/maintenance': owner(async (context) => {
    const { deps, user, form } = context
    const until = parseUntil(form, deps.clock())
    await deps.data.settings.save({ author: ownerOf(context), ...maintenanceSetting(until) })
    deps.log.info('maintenance.on', { account_id: user.account.id, until: isoTime(until) })
    return `${PATH}?done=on`
  }, servicePage),
  'POST /app/service/maintenance/end': owner(async (context) => {
    const { deps, user } = context
    await deps.data.settings.save({ author: ownerOf(context), ...maintenanceSetting(undefined) })
    deps.log.info('maintenance.off', { account_id: user.account.id })
    return `${PATH}?done=off`
  }),
  [`POST ${RETRY_PATH}`]: owner(retryCertificate),
})

export const serviceSettingsPages = signedInPages({
  'GET /app/service/settings': owner(
    (context) =>
      page(context, {
        title: 'Settings',
        at: SETTINGS,
        main: parts.card('Active settings', settings(context.deps)),
      }),
    { offers: [{ label: 'Settings', section: 'service', words: 'environment variables' }] },
  ),
})

const LENGTHS = [
  { value: '30m', label: '30 minutes', ms: 30 * MINUTE },
  { value: '2h', label: '2 hours', ms: 2 * HOUR },
]

/**
 * When the maintenance ends. The field `utc` is the field `at` converted by the script, which knows
 * the browser's time zone. Without scripts `at` is in UTC. Throws `FormRefusal`.
 */
function parseUntil(form: Form, now: number): number {
  const length = LENGTHS.find(({ value }) => value === form.text('length'))
  if (length) return now + length.ms
  const at = form.text('at')
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(at)) {
    throw refuseAt('at', 'Choose the day and the time at which it ends.')
  }
  const until = parseIsoTime(form.text('utc') || `${at}Z`)
  if (until === undefined) throw refuseAt('at', 'There is no such day or time.')
  if (until <= now) throw refuseAt('at', 'This time has passed.')
  if (until - now > MAINTENANCE_MAX_MS) throw refuseAt('at', 'At most 30 days from now.')
  return until
}

const DONE = {
  on: 'Maintenance has started.',
  off: 'Maintenance is over. The API works again.',
  ...CERTIFICATE_MESSAGES,
}

function servicePage(context: PageContext): Response {
  const { deps } = context
  return page(context, {
    title: 'Health',
    at: PATH,
    messages: DONE,
    main: html`
      <div ${liveRegion('health', PATH)}>${health(deps)}</div>
      <div class="columns cards">
        ${parts.card('Maintenance', maintenance(context))}
        ${parts.card('Backup', backup(deps))}
      </div>
      ${certificateCard(context)}`,
  })
}

/** A problem that needs the administrator; undefined if there is none. */
function findProblem(deps: DashboardDeps, { hits, ...vitals }: Vitals): string | undefined {
  if (vitals.cluster?.problem) {
    // Some reasons are sentences with a period, others are not.
    const reason = vitals.cluster.problem.replace(/\.$/, '')
    return `Changes fail: ${reason}. Short links keep working, and hits are kept.`
  }
  if (vitals.isWriteFailing) {
    return 'Writes to the disk fail: is it full? Short links keep working, and hits are kept.'
  }
  if (!vitals.isDatabaseHealthy) return 'The database does not respond. See the log for the reason.'
  if (hits.areOverflowing) {
    return 'The hit journal is full: new hits are only in memory until they are written.'
  }
  if (!vitals.disk.hasImageRoom) {
    return (
      'Less than 10 % of the disk or of its inodes is free: new QR images are rendered on demand ' +
      'instead of stored.'
    )
  }
  if (hits.journalFill > 0.5) return 'The hit journal fills faster than hits are written.'
  const isListFailing = deps.blocklist.state().files.some(({ error }) => error !== null)
  return isListFailing ? 'A file of the blocklist failed: see “Blocked hosts”.' : undefined
}

function health(deps: DashboardDeps): Html {
  const vitals = deps.vitals()
  const { isDatabaseHealthy, isWriteFailing, hits, disk, memory, startedAt, cluster } = vitals
  const problem = findProblem(deps, vitals)
  return html`
    ${
      problem === undefined
        ? parts.notice('good', html`<p><strong>Healthy.</strong></p>`)
        : parts.notice('bad', html`<p><strong>Needs attention.</strong> ${problem}</p>`)
    }
    <div class="columns cards small">
      ${factsCard('Database', [
        ['State', isWriteFailing ? 'writes fail' : isDatabaseHealthy ? 'healthy' : 'no response'],
        ['Size', formatBytes(disk.database)],
        ['Write-ahead log', formatBytes(disk.log)],
        ['Free disk space', disk.free === undefined ? 'unknown' : formatBytes(disk.free)],
      ])}
      ${factsCard('Hits being written', [
        ['Pending', parts.count(hits.pending)],
        ['Journal filled', `${Math.round(hits.journalFill * 100)} %`],
      ])}
      ${
        cluster &&
        factsCard('Cluster', [
          ['This host', cluster.problem ? 'not following' : 'live'],
          ['Other hosts live', `${cluster.liveHosts} of ${cluster.hosts}`],
          ['Changes to apply', parts.count(cluster.lag)],
        ])
      }
      ${factsCard('Program', [
        ['Version', VERSION],
        ['Running for', duration(Date.now() - startedAt)],
        ['Memory', memory === undefined ? 'unknown' : formatBytes(memory)],
      ])}
    </div>`
}

const factsCard = (title: string, lines: readonly (readonly [string, string])[]): Html =>
  parts.card(title, parts.facts(lines))

function duration(ms: number): string {
  const days = Math.floor(ms / DAY)
  const hours = Math.floor((ms % DAY) / HOUR)
  const minutes = Math.floor((ms % HOUR) / MINUTE)
  if (days > 0) return `${parts.plural(days, 'day')}, ${hours} h`
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min` : `${Math.floor(ms / SECOND)} s`
}

function maintenance(context: PageContext): Html {
  const { deps, user, refusal } = context
  const until = deps.maintenance.until()
  const explanation = html`<p>During maintenance the API answers 503 with the time when it ends.
    Redirects, QR images and these pages keep working, but links cannot be changed.</p>`
  if (until !== undefined && !refusal) {
    return html`
      ${parts.notice(
        'note',
        html`<p><strong>On until ${parts.time(until)}</strong>, for
          ${parts.countdown(until, deps.clock())} more.</p>`,
      )}
      ${explanation}
      ${parts.buttonForm(user, `${PATH}/maintenance/end`, 'End it now', { look: 'primary' })}`
  }
  const hour = isoTime(deps.clock()).slice(11, 16)
  return html`
    <p><strong>Off.</strong></p>
    ${explanation}
    ${parts.form(user, `${PATH}/maintenance`, [
      parts.select({
        name: 'length',
        label: 'Duration',
        value: typed(context, 'length', '30m').value,
        choices: [...LENGTHS, { value: 'at', label: 'Until another time' }],
      }),
      parts.field({
        ...typed(context, 'at'),
        label: 'Until',
        type: 'datetime-local',
        hint: html`<span data-without-script>In UTC, where it is ${hour} now.</span>`,
        extra: { 'data-utc': 'utc' },
      }),
      html`<input type="hidden" name="utc" id="utc">`,
      parts.button('Start maintenance', 'danger'),
    ])}`
}

function backup({ lastBackupAt, clock }: DashboardDeps): Html {
  const at = lastBackupAt()
  const age = at === undefined ? undefined : Math.max(0, clock() - at)
  return html`
    <p>${
      at === undefined || age === undefined
        ? html`<strong>None yet</strong> by <code>hopcode backup</code>.`
        : html`<strong>${duration(age)} ago</strong> by <code>hopcode backup</code>:
            ${parts.time(at)}.`
    }</p>
    <p class="hint">Copies by other tools, such as Litestream or snapshots of the disk, are not seen
      here.</p>`
}

function settings({ settings }: DashboardDeps): Html {
  const changed = settings.filter(({ isSet }) => isSet)
  return html`
    <p>They come from the environment of the service and change with its next start.
      Passwords and keys are not shown.</p>
    ${
      changed.length > 0
        ? settingTable('Settings that are set', changed)
        : html`<p>None is set.</p>`
    }
    <details>
      <summary>All settings with their defaults</summary>
      ${settingTable('All settings', settings)}
    </details>`
}

const settingTable = (caption: string, settings: DashboardDeps['settings']): Html =>
  parts.table(caption, settings, {
    Name: ({ name }) => html`<code>${name}</code>`,
    Value: ({ value, isSet }) =>
      html`<span class="long">${value}</span>${!isSet && html` <span class="hint">default</span>`}`,
    Meaning: ({ meaning }) => meaning,
  })
