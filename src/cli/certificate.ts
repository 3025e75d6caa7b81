import type { Command } from '@commander-js/extra-typings'
import type { CertificateSource, NameStatus } from '../certificates/status.ts'
import { isoTime } from '../lib/clock.ts'
import { type Administration, printing } from './administration.ts'
import { CommandError } from './errors.ts'
import { type Flag, JSON_OBJECT } from './options.ts'

export function addCertificateCommands(program: Command): void {
  const certificate = program.command('certificate').description('the certificate for https')
  certificate
    .command('show', { isDefault: true })
    .description('show the hosts in the certificate, and why others are missing')
    .option(...JSON_OBJECT)
    .action((options) => run('showCertificate', options))
  certificate
    .command('retry')
    .description('try failed hosts again now, within the limits of the certificate authority')
    .option(...JSON_OBJECT)
    .action((options) => run('retryCertificate', options))
}

/** What the commands run. Each function returns what is printed. */
export const certificateCommands = { showCertificate, retryCertificate }

const run = printing(certificateCommands)

function sourceOf({ certificates }: Administration): CertificateSource {
  if (certificates) return certificates
  throw new CommandError(
    'No service with https runs on this data folder: it needs ACME_EMAIL or TLS_CERT_FILE.',
  )
}

const timeOrNull = (ms: number | undefined): string | null =>
  ms === undefined ? null : isoTime(ms)

function showCertificate(deps: Administration, { json }: { json?: Flag }): string {
  const { source, names, until, renewAt, problem } = sourceOf(deps).status()
  if (json) {
    return JSON.stringify({
      source,
      expires_at: timeOrNull(until),
      renews_at: timeOrNull(renewAt),
      problem: problem ?? null,
      names: names.map(({ name, isActive, error, nextAt }) => ({
        name,
        active: isActive,
        error: error ?? null,
        next_attempt_at: timeOrNull(nextAt),
      })),
    })
  }
  return [
    until === undefined ? 'There is no certificate yet.' : `It expires at ${isoTime(until)}.`,
    ...(renewAt === undefined ? [] : [`It is renewed at ${isoTime(renewAt)}.`]),
    ...(problem === undefined ? [] : [problem]),
    ...names.map(lineOf),
  ].join('\n')
}

function lineOf({ name, isActive, error, nextAt }: NameStatus): string {
  const state = isActive ? 'in the certificate' : 'not in the certificate'
  const next = nextAt === undefined ? [] : [`next attempt at ${isoTime(nextAt)}`]
  return [name, state, ...next, ...(error === undefined ? [] : [error])].join('  ')
}

function retryCertificate(deps: Administration, { json }: { json?: Flag }): string {
  const tried = sourceOf(deps).retry()
  if (json) return JSON.stringify({ tried })
  if (!tried) throw new CommandError('It was tried less than a minute ago.')
  return 'It is tried now: hopcode certificate shows the result.'
}
