import { readableHost } from '../../addresses/shown-host.ts'
import { parseHost, STORED_HOSTS_MAX, type StoredHost } from '../../blocklist/stored-hosts.ts'
import { type Html, html } from '../../lib/html.ts'
import { countLinksTo, type LinksToHost } from '../../lists/search-all.ts'
import { BAD_REASON, parseReason, REASON_LENGTH_MAX } from '../../moderation/moderation.ts'
import { type CurrentUser, ownerOf, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { type Result, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { confirmPage, PAGE_SIZE, page, pageNumber, pager } from '../ui/layout.ts'
import { day } from '../ui/local-time.ts'
import { line, menuButton, menuLink, rowMenu, searchPath } from '../ui/service-parts.ts'

const PATH = '/app/service/hosts'

/** Hosts to which no link redirects: those that the owner blocks here, and those of files. */
export const serviceHostsPages = signedInPages({
  'GET /app/service/hosts': owner(hostsPage, {
    offers: [{ label: 'Blocked hosts', section: 'service', words: 'abuse' }],
  }),
  'POST /app/service/hosts': owner(blockHost, hostsPage),
  'POST /app/service/hosts/unblock': owner(async (context) => {
    const { deps, user, form } = context
    const host = form.text('host')
    if (await deps.data.blockedHosts.unblock({ author: ownerOf(context), host })) {
      deps.log.info('blocklist.host_unblocked', { account_id: user.account.id, host })
    }
    return `${PATH}?done=unblocked`
  }),
})

/** Asks first, if links stop. */
async function blockHost(context: PageContext): Promise<Result> {
  const { deps, user, form } = context
  const host = parseHost(form.text('host'))
  if (host === undefined) throw refuseAt('host', 'Enter a host such as bad.example, or a URL.')
  const reason = parseReason(form.text('reason'))
  if (reason === undefined) throw refuseAt('reason', `The reason ${BAD_REASON}.`)
  if (form.text('confirmed') !== '1' && !isBlocked(deps, host)) {
    const found = await countLinksTo(deps.data, host)
    if (found.links > 0) return confirmBlock(context, { host, reason }, found)
  }
  const command = { author: ownerOf(context), host, reason }
  if ((await deps.data.blockedHosts.block(command)) === 'too_many') {
    const most = parts.count(STORED_HOSTS_MAX)
    throw refuseAt('host', `At most ${most} hosts are blocked here. Put more into a file.`)
  }
  deps.log.info('blocklist.host_blocked', { account_id: user.account.id, host })
  return `${PATH}?${new URLSearchParams({ done: 'blocked', host })}`
}

const isBlocked = ({ blocklist }: DashboardDeps, host: string): boolean =>
  blocklist.isBlocked(new URL(`http://${host}/`))

const linksText = ({ links, hasMore }: LinksToHost): string =>
  hasMore ? `at least ${parts.plural(links, 'link')}` : parts.plural(links, 'link')

function confirmBlock(
  context: PageContext,
  values: { host: string; reason: string },
  found: LinksToHost,
): Response {
  const { host } = values
  const links = linksText(found)
  const stopped = `${links} of ${parts.plural(found.accounts, 'account')}`
  return confirmPage(context, {
    title: `Block ${readableHost(host)}`,
    at: PATH,
    back: { href: PATH, label: 'Blocked hosts' },
    warning: html`<strong>This stops ${stopped}.</strong>
      Visitors get 410 at once, and new links to the host are refused. All work again when the host
      is removed from the blocked ones.`,
    about: html`<p><a href="${searchPath(host)}">Show these links</a></p>`,
    label: `Block the host and stop ${links}`,
    values: { ...values, confirmed: '1' },
    cancel: { label: 'Cancel', href: PATH },
  })
}

/** What a blocked host has stopped. */
async function blockedText({ deps, query }: PageContext): Promise<string> {
  const host = parseHost(query.host ?? '')
  if (host === undefined || !isBlocked(deps, host)) return 'The host is blocked.'
  const found = await countLinksTo(deps.data, host)
  const name = readableHost(host)
  return found.links === 0
    ? `${name} is blocked. No link leads to it.`
    : `${name} is blocked: ${linksText(found)} stopped.`
}

async function hostsPage(context: PageContext): Promise<Response> {
  const { deps, user, query } = context
  const number = pageNumber(query.page)
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { total, items } = deps.data.blockedHosts.list(range)
  return page(context, {
    title: 'Blocked hosts',
    at: PATH,
    messages: {
      unblocked: 'The host is not blocked here any more.',
      ...(query.done === 'blocked' && { blocked: await blockedText(context) }),
    },
    main: html`
      ${parts.card('Block a host', blockForm(context))}
      ${parts.card('Blocked here', [
        items.length > 0 ? hostTable(user, items) : html`<p>No hosts.</p>`,
        pager(number, total, (to) => `${PATH}?page=${to}`),
      ])}
      ${parts.card('Files', files(deps))}`,
  })
}

const blockForm = (context: PageContext): Html => html`
  <p>Links to the host and to all names below it stop, and new ones are refused. You see how many
    stop before they do. They work again when the host is removed.</p>
  ${parts.form(context.user, PATH, [
    parts.field({
      ...typed(context, 'host', context.query.host),
      label: 'Host or URL',
      required: true,
      extra: { maxlength: 2048 },
    }),
    parts.field({
      ...typed(context, 'reason'),
      label: 'Reason',
      required: true,
      hint: 'Only owners see it.',
      extra: { maxlength: REASON_LENGTH_MAX },
    }),
    parts.button('Block the host', 'danger'),
  ])}`

const hostTable = (user: CurrentUser, items: readonly StoredHost[]): Html =>
  parts.table(
    'Hosts blocked here, newest first',
    items,
    {
      Host: ({ host }) => line(host, searchPath(host)),
      Reason: ({ reason }) => line(reason),
      Since: ({ blockedAt }) => day(blockedAt, user),
      Actions: {
        cell: ({ host }) =>
          rowMenu(host, host, [
            menuLink('Show its links', searchPath(host)),
            menuButton(user, `${PATH}/unblock`, 'Remove: its links work again', { host }),
          ]),
        isHidden: true,
      },
    },
    { widths: '- - s x' },
  )

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
      File: ({ file, error }) => html`<span class="long">${file}</span>
        ${
          error !== null && html`<div class="error">Not active in its current form: ${error}</div>`
        }`,
      Hosts: { cell: ({ entries }) => parts.count(entries), isNumber: true },
      Loaded: ({ loadedAt }) => (loadedAt === null ? 'never' : parts.time(loadedAt)),
    })}`
}
