import { parseHost, STORED_HOSTS_MAX, type StoredHost } from '../../blocklist/stored-hosts.ts'
import { type Html, html } from '../../lib/html.ts'
import { BAD_REASON, parseReason, REASON_LENGTH_MAX } from '../../moderation/moderation.ts'
import { type CurrentUser, ownerOf, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { PAGE_SIZE, page, pageNumber, pager } from '../ui/layout.ts'
import { searchPath, serviceTabs } from '../ui/service-parts.ts'

const PATH = '/app/service/hosts'

/** Hosts to which no link redirects: those that the owner blocks here, and those of files. */
export const serviceHostsPages = signedInPages({
  'GET /app/service/hosts': owner(hostsPage, {
    offers: [
      { label: 'Blocked hosts', words: 'abuse' },
      { label: 'Blocked hosts', place: 'tabs' },
    ],
  }),
  'POST /app/service/hosts': owner(async (context) => {
    const { deps, user, form } = context
    const host = parseHost(form.text('host'))
    if (host === undefined) throw refuseAt('host', 'Enter a host such as bad.example, or a URL.')
    const reason = parseReason(form.text('reason'))
    if (reason === undefined) throw refuseAt('reason', `The reason ${BAD_REASON}.`)
    const command = { author: ownerOf(context), host, reason }
    if ((await deps.data.blockedHosts.block(command)) === 'too_many') {
      const most = parts.count(STORED_HOSTS_MAX)
      throw refuseAt('host', `At most ${most} hosts are blocked here. Put more into a file.`)
    }
    deps.log.info('blocklist.host_blocked', { account_id: user.account.id, host })
    return `${PATH}?done=blocked`
  }, hostsPage),
  'POST /app/service/hosts/unblock': owner(async (context) => {
    const { deps, user, form } = context
    const host = form.text('host')
    if (await deps.data.blockedHosts.unblock({ author: ownerOf(context), host })) {
      deps.log.info('blocklist.host_unblocked', { account_id: user.account.id, host })
    }
    return `${PATH}?done=unblocked`
  }),
})

const DONE = {
  blocked: 'The host is blocked. Links to it have stopped.',
  unblocked: 'The host is not blocked here any more.',
}

function hostsPage(context: PageContext): Response {
  const { deps, user, query } = context
  const number = pageNumber(query.page)
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { total, items } = deps.data.blockedHosts.list(range)
  return page(context, {
    title: 'Blocked hosts',
    tabs: serviceTabs(user, PATH),
    messages: DONE,
    main: html`
      <div class="columns cards">
        ${parts.card('Block a host', blockForm(context))}
        ${parts.card('Files', files(deps))}
      </div>
      ${parts.card('Blocked here', [
        items.length > 0 ? hostTable(user, items) : html`<p>No hosts.</p>`,
        pager(number, total, (to) => `${PATH}?page=${to}`),
      ])}`,
  })
}

const blockForm = (context: PageContext): Html => html`
  <p>Links to the host and to all names below it stop at once, and new ones are refused. They work
    again when the host is removed.</p>
  ${parts.form(context.user, PATH, [
    parts.field({
      ...typed(context, 'host'),
      label: 'Host or URL',
      required: true,
      autocomplete: 'off',
      extra: { maxlength: 2048 },
    }),
    parts.field({
      ...typed(context, 'reason'),
      label: 'Reason',
      required: true,
      autocomplete: 'off',
      hint: 'Only owners see it.',
      extra: { maxlength: REASON_LENGTH_MAX },
    }),
    parts.button('Block the host', 'danger'),
  ])}`

const hostTable = (user: CurrentUser, items: readonly StoredHost[]): Html =>
  parts.table('Hosts blocked here, newest first', items, {
    Host: ({ host }) => html`<a class="code long" href="${searchPath(host)}">${host}</a>`,
    Reason: ({ reason }) => html`<span class="long">${reason}</span>`,
    Since: ({ blockedAt }) => parts.time(blockedAt),
    Remove: {
      cell: ({ host }) =>
        parts.buttonForm(user, `${PATH}/unblock`, 'Remove', {
          look: 'plain',
          values: { host },
          title: `Remove ${host}`,
        }),
      isHidden: true,
    },
  })

function files(deps: DashboardDeps): Html {
  const { entries, files } = deps.blocklist.state()
  if (files.length === 0) {
    return html`<p>No files. <code>BLOCKLIST_FILES</code> names files with long lists of bad hosts.
      They are read again when they change.</p>`
  }
  const failing = files.filter(({ error }) => error !== null).length
  return html`
    <p>${parts.plural(entries, 'blocked host')} from ${parts.plural(files.length, 'file')}. Changed
      files are loaded automatically.</p>
    ${
      failing > 0 &&
      parts.errorNotice(
        `${parts.plural(failing, 'file')} failed: the last loaded version stays active.`,
      )
    }
    ${parts.table('Files of the blocklist', files, {
      File: ({ file, error }) => html`<span class="code">${file}</span>
        ${
          error !== null && html`<div class="error">Not active in its current form: ${error}</div>`
        }`,
      Hosts: { cell: ({ entries }) => parts.count(entries), isNumber: true },
      Loaded: ({ loadedAt }) => (loadedAt === null ? 'never' : parts.time(loadedAt)),
    })}`
}
