import { Elysia } from 'elysia'
import { formatBytes } from '../../lib/bytes.ts'
import { HOUR, isoTime, MINUTE, SECOND } from '../../lib/clock.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { VERSION } from '../../lib/version.ts'
import { maintenanceSetting } from '../../maintenance/mode.ts'
import type { Vitals } from '../../status/vitals.ts'
import { goTo } from '../answers.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { fragment, page, wantsFragment } from '../ui/layout.ts'

const DAY = 24 * HOUR
/** Maintenance longer than this is a mistyped date. */
const MAINTENANCE_MAX_MS = 30 * DAY

/** How the service is, maintenance, and the blocklist: for its owner. */
export const servicePages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.service', prefix: '/app/service' })
    .use(signedIn(deps, { owner: true }))
    .get('', ({ request, visitor, query }) =>
      wantsFragment(request)
        ? fragment(health(deps))
        : servicePage(deps, visitor, { done: query.done }),
    )
    .post('/maintenance', async ({ visitor, form }) => {
      const until = readUntil(form, deps.clock())
      if (typeof until === 'object') {
        const sent = { length: form.text('length'), at: form.text('at') }
        return servicePage(deps, visitor, { ...until, sent })
      }
      await deps.writer.call('saveSetting', maintenanceSetting(until))
      deps.log.info('maintenance.on', { account_id: visitor.account.id, until: isoTime(until) })
      return goTo('/app/service?done=on')
    })
    .post('/maintenance/end', async ({ account }) => {
      await deps.writer.call('saveSetting', maintenanceSetting(undefined))
      deps.log.info('maintenance.off', { account_id: account.id })
      return goTo('/app/service?done=off')
    })

const LENGTHS = new Map([
  ['30m', 30 * MINUTE],
  ['2h', 2 * HOUR],
])

/**
 * When the maintenance that a form asks for ends. `utc` is the field `at` as the script of the
 * visitor's browser understands it; without the script, `at` is in UTC.
 */
function readUntil(form: Form, now: number): number | { problem: string } {
  const length = LENGTHS.get(form.text('length'))
  if (length !== undefined) return now + length
  const at = form.text('at')
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/.test(at)) {
    return { problem: 'Choose the day and the time at which it ends.' }
  }
  const until = Date.parse(form.text('utc') || `${at}Z`)
  if (Number.isNaN(until)) return { problem: 'There is no such day or time.' }
  if (until <= now) return { problem: 'This time has passed.' }
  if (until - now > MAINTENANCE_MAX_MS) return { problem: 'At most 30 days from now.' }
  return until
}

const DONE: Readonly<Record<string, string>> = {
  on: 'Maintenance has begun.',
  off: 'Maintenance is over: the API answers again.',
}

interface Shown {
  done?: string | undefined
  /** What is wrong with the end of the maintenance, and what was sent. */
  problem?: string
  sent?: { length: string; at: string }
}

function servicePage(deps: DashboardDeps, visitor: Visitor, shown: Shown): Response {
  const { done = '', problem } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  const refresh = attributes({
    ...{ id: 'health', 'hx-get': '/app/service', 'hx-trigger': 'every 10s, live' },
    ...{ 'hx-target': 'this', 'hx-swap': 'innerHTML', 'data-live': true },
  })
  return page(visitor, {
    ...{ title: 'Service', current: 'service', status: problem ? 422 : 200 },
    main: html`
      ${serviceTabs('state')}
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      <div ${refresh}>${health(deps)}</div>
      <div class="cards">
        ${parts.card('Maintenance', maintenance(deps, visitor, shown))}
        ${parts.card('Blocklist', blocklist(deps))}
      </div>`,
  })
}

/** Leads from one page of the service to the other. */
export function serviceTabs(current: 'state' | 'accounts' | 'links'): Html {
  const tab = (name: string, href: string, label: string) => {
    const all = attributes({ href, 'aria-current': name === current ? 'page' : undefined })
    return html`<li><a ${all}>${label}</a></li>`
  }
  return html`<nav class="tabs" aria-label="Service"><ul>
    ${tab('state', '/app/service', 'Health')}
    ${tab('accounts', '/app/service/accounts', 'Accounts')}
    ${tab('links', '/app/service/links', 'Links')}
  </ul></nav>`
}

/** What whoever runs the service should do something about; undefined while all is well. */
function troubleOf(deps: DashboardDeps, { hits, ...vitals }: Vitals): string | undefined {
  if (vitals.isWriteFailing) {
    return 'The disk refuses writes: is it full? Short links go on, and their hits wait.'
  }
  if (!vitals.isDatabaseWell) return 'The database does not answer. The log says why.'
  if (hits.areOverflowing) {
    return 'The journal of hits is full: further ones are in memory alone until they are counted.'
  }
  if (hits.journalFill > 0.5) return 'The journal of hits fills faster than they are counted.'
  const isListFailing = deps.blocklist.state().files.some(({ error }) => error !== null)
  return isListFailing ? 'A file of the blocklist failed.' : undefined
}

function health(deps: DashboardDeps): Html {
  const vitals = deps.vitals()
  const { isDatabaseWell, isWriteFailing, hits, disk, memory, startedAt } = vitals
  const trouble = troubleOf(deps, vitals)
  const isWaiting = isWriteFailing || hits.areOverflowing || hits.journalFill > 0.5
  const uptime = Date.now() - startedAt
  return html`
    ${
      trouble === undefined
        ? parts.notice('good', html`<p><strong>All is well.</strong></p>`)
        : parts.notice('bad', html`<p><strong>Something needs you.</strong> ${trouble}</p>`)
    }
    <div class="cards small">
      ${parts.card('Database', [
        html`<p>${isDatabaseWell ? 'It answers.' : 'It does not answer as it should.'}
          ${isWriteFailing ? 'The disk refuses writes.' : 'The disk takes writes.'}</p>`,
        facts([
          ['Size', formatBytes(disk.database)],
          ['Write-ahead log', formatBytes(disk.log)],
          ['Room on the disk', disk.free === undefined ? 'unknown' : formatBytes(disk.free)],
        ]),
      ])}
      ${parts.card('Hits on their way', [
        html`<p>${
          isWaiting
            ? 'They wait for the disk and gather in the journal.'
            : 'They are counted within a second. None is lost.'
        }</p>`,
        facts([
          ['Waiting', hits.pending.toLocaleString('en')],
          ['Journal filled', `${Math.round(hits.journalFill * 100)} %`],
        ]),
      ])}
      ${parts.card('Program', [
        facts([
          ['Version', VERSION],
          ['Running for', duration(uptime)],
          ['Memory', memory === undefined ? 'unknown' : formatBytes(memory)],
        ]),
      ])}
    </div>`
}

function facts(all: readonly (readonly [string, string])[]): Html {
  const pairs = all.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)
  return html`<dl class="facts">${pairs}</dl>`
}

function duration(ms: number): string {
  const [days, hours] = [Math.floor(ms / DAY), Math.floor((ms % DAY) / HOUR)]
  const minutes = Math.floor((ms % HOUR) / MINUTE)
  if (days > 0) return `${parts.plural(days, 'day')}, ${hours} h`
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min` : `${Math.floor(ms / SECOND)} s`
}

function maintenance(deps: DashboardDeps, visitor: Visitor, { problem, sent }: Shown): Html {
  const until = deps.maintenance.until()
  const what = html`<p>During maintenance the API answers 503 and says when it ends. Short links,
    QR images and these pages go on, but no link can be changed.</p>`
  if (until !== undefined && !problem) {
    return html`
      ${parts.notice(
        'note',
        html`<p><strong>On until ${parts.time(until)}</strong>, for
          ${parts.countdown(until, deps.clock())} more.</p>`,
      )}
      ${what}
      ${parts.buttonForm(visitor, {
        ...{ action: '/app/service/maintenance/end', label: 'End it now', look: 'primary' },
      })}`
  }
  const hour = isoTime(deps.clock()).slice(11, 16)
  return html`
    <p><strong>Off.</strong></p>
    ${what}
    ${parts.form({
      ...{ action: '/app/service/maintenance', csrf: visitor.csrf },
      children: [
        parts.select({
          ...{ name: 'length', label: 'It lasts', value: sent?.length ?? '30m' },
          choices: [
            { value: '30m', label: '30 minutes' },
            { value: '2h', label: '2 hours' },
            { value: 'at', label: 'until the time below' },
          ],
        }),
        parts.field({
          ...{ name: 'at', label: 'Until', type: 'datetime-local', value: sent?.at },
          hint: html`Only for the last choice.
            <span data-without-script>In UTC, where it is ${hour} now.</span>`,
          ...{ error: problem, extra: { 'data-utc': 'utc' } },
        }),
        html`<input type="hidden" name="utc" id="utc">`,
        parts.button('Begin maintenance', 'danger'),
      ],
    })}`
}

function blocklist(deps: DashboardDeps): Html {
  const { entries, files } = deps.blocklist.state()
  if (files.length === 0) {
    return html`<p>No lists. Name files with bad hosts in the setting
      <code>BLOCKLIST_FILES</code>, and no link can lead to one of them.</p>`
  }
  const failing = files.filter(({ error }) => error !== null).length
  const failed = `${parts.plural(failing, 'file')} failed: what was read before stays in force.`
  const rows = files.map(({ file, entries, loadedAt, error }) => [
    html`<span class="code">${file}</span>
      ${error !== null && html`<div class="error">Not in force as it is now: ${error}</div>`}`,
    entries.toLocaleString('en'),
    loadedAt === null ? 'never' : parts.time(loadedAt),
  ])
  const columns = [{ label: 'File' }, { label: 'Hosts', isNumber: true }, { label: 'Loaded' }]
  return html`
    <p>${parts.plural(entries, 'host')} that no link may lead to, from
      ${parts.plural(files.length, 'file')}. Files are read again when they change, and links to a
      listed host stop redirecting.</p>
    ${failing > 0 && parts.notice('bad', html`<p>${failed}</p>`)}
    ${parts.table({ caption: 'Files of the blocklist', columns, rows })}`
}
