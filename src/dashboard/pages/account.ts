import { closeAccount, renameAccount } from '../../accounts/operations/accounts.ts'
import { planName } from '../../accounts/plans.ts'
import { roleName } from '../../accounts/roles.ts'
import type { AccountRow } from '../../accounts/store.ts'
import { findTimeZone, TIME_ZONES } from '../../hits/range.ts'
import { type Html, html } from '../../lib/html.ts'
import { proofField, requireOwnPassword } from '../auth/confirm-password.ts'
import { isTheme } from '../auth/cookies.ts'
import { asked, authorOf, type PageContext, requireAccount } from '../auth/guard.ts'
import { safeNext } from '../errors.ts'
import { admin, signedInPages, viewer } from '../page-routes.ts'
import { atField, isHtmx, noContent, refuse, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { zoneName } from '../ui/hit-chart.ts'
import { confirmPage, page } from '../ui/layout.ts'
import { domainChoices } from '../ui/link-parts.ts'

const PATH = '/app/account'
const DOMAINS = `${PATH}/domains` as const
/** The response waits for the deletion of this many links; more are deleted in the background. */
const LINKS_AWAITED_MAX = 2000

/** The account's name, time zone, domain of new links, and its deletion. */
export const accountPages = signedInPages({
  'GET /app/account': viewer(generalPage, {
    offers: [{ label: 'General', section: 'account', words: 'name time zone plan settings' }],
  }),
  'POST /app/account/name': admin(saveGeneral, generalPage),
  'POST /app/account/time-zone': admin(saveGeneral, generalPage),
  'GET /app/account/delete': admin(deletePage),
  'POST /app/account/delete': admin(deleteAccount, deletePage),
  /** The choice of colors in the account menu. It is a cookie, so it belongs to this browser. */
  'POST /app/theme': {
    role: 'viewer',
    personal: true,
    run: ({ deps, form, request }) => {
      const theme = form.text('theme')
      const cookie = isTheme(theme) ? deps.cookies.theme(theme) : deps.cookies.end('theme')
      if (isHtmx(request)) return noContent([cookie])
      return seeOther(safeNext(form.text('next')) ?? PATH, [cookie])
    },
  },
})

export const accountDomainPages = signedInPages({
  'GET /app/account/domains': admin(domainsPage, {
    offers: [{ label: 'Domains', section: 'account' }],
  }),
  'POST /app/account/domain': admin(async (context) => {
    const { deps, form } = context
    const domainId = deps.addresses.idOf(form.text('domain'))
    if (!(await deps.data.domains.setDefault({ author: authorOf(context), domainId }))) {
      throw refuse('The account may not use this domain.')
    }
    return `${DOMAINS}?done=domain`
  }),
})

/** Saves the fields that were sent. */
async function saveGeneral(context: PageContext): Promise<string> {
  const { deps, form } = context
  const zone = form.text('zone')
  const timeZone = findTimeZone(zone)
  if (zone !== '' && !timeZone) throw refuse('There is no such time zone.')
  if (form.has('name') || !timeZone) {
    await atField('name', () => renameAccount(asked(context), form.text('name')))
  }
  if (timeZone) await deps.data.accounts.setTimeZone({ author: authorOf(context), timeZone })
  return `${PATH}?done=saved`
}

async function deleteAccount(context: PageContext): Promise<Response> {
  const { deps, user } = context
  await requireOwnPassword(context)
  const { linkCount } = requireAccount(context)
  await closeAccount(asked(context))
  const finished = deps.deletion.finish(user.account.id)
  if (linkCount <= LINKS_AWAITED_MAX) await finished
  return seeOther('/app/sign-in?done=deleted', [deps.cookies.end('session')])
}

function generalPage(context: PageContext): Response {
  const { user } = context
  const account = requireAccount(context)
  const isAdmin = user.may('POST', `${PATH}/name`)
  return page(context, {
    title: 'General',
    at: PATH,
    messages: { saved: 'Saved.' },
    main: html`
      ${isAdmin && parts.card('The account', generalForm(context, account))}
      ${parts.card(
        isAdmin ? 'Plan and limits' : 'The account',
        accountFacts(context, account, isAdmin),
      )}
      ${parts.offer(
        user,
        `${PATH}/delete`,
        parts.card('Delete the account', [
          html`<p>Deletes its API keys, its sessions and all of its links permanently.</p>`,
          parts.linkButton('Delete the account…', `${PATH}/delete`, 'danger'),
        ]),
      )}`,
  })
}

function generalForm(context: PageContext, { name, timeZone }: AccountRow): Html {
  const { user } = context
  const zones = TIME_ZONES.map((value) => ({ value, label: zoneName(value) }))
  const none = { value: '', label: `That of each browser (${zoneName(user.zone)})` }
  return parts.form(user, `${PATH}/name`, [
    parts.field({
      ...typed(context, 'name', name),
      label: 'Name',
      autocomplete: 'organization',
      required: true,
      hint: 'Members see it, and those you invite.',
    }),
    parts.select({
      name: 'zone',
      label: 'Time zone',
      choices: timeZone === null ? [none, ...zones] : zones,
      value: typed(context, 'zone', timeZone ?? '').value,
    }),
    timeZone !== null && html`<p class="hint" data-zone-hint hidden></p>`,
    parts.button('Save'),
  ])
}

function accountFacts(
  { deps: { plans }, user }: PageContext,
  account: AccountRow,
  isAdmin: boolean,
): Html {
  const limits = plans[account.plan]
  const budget = (n: number) => (n === 0 ? 'no limit' : parts.count(n))
  return parts.facts([
    !isAdmin && ['Name', account.name],
    !isAdmin && ['Time zone', zoneName(user.zone)],
    ['Plan', planName(account.plan)],
    ...parts.storedFacts(account, limits),
    ['Changes a minute', budget(limits.write)],
    ['Reads a minute', budget(limits.read)],
    ['URLs in one bulk', parts.count(limits.bulkMax)],
    ['Since', parts.time(account.createdAt)],
    ['Your role', roleName(user.role)],
  ])
}

function domainsPage(context: PageContext): Response {
  const { deps, user } = context
  const { domains } = deps.data
  const hosts = domains.listFor(user.account.id).map(({ host }) => host)
  const choices = domainChoices(deps, hosts)
  const service = '/app/service/domains'
  return page(context, {
    title: 'Domains',
    at: DOMAINS,
    messages: { domain: 'New links have this domain.' },
    main: parts.card('Domain of new links', [
      hosts.length > 0
        ? parts.form(user, `${PATH}/domain`, [
            parts.select({
              name: 'domain',
              label: 'Domain',
              value: deps.addresses.namedHost(domains.defaultOf(user.account.id)) ?? '',
              choices,
              hint: 'Also for links of the API. Links that exist keep theirs.',
            }),
            parts.button('Save'),
          ])
        : html`<p>Links of this account have <strong>${choices[0]?.label}</strong>. Owners of this
            service add other domains, and choose who may use them.</p>`,
      parts.offer(
        user,
        service,
        html`<p class="hint after"><a href="${service}">Domains of the
        service</a></p>`,
      ),
    ]),
  })
}

function deletePage(context: PageContext): Response {
  const { deps } = context
  const { id, linkCount } = requireAccount(context)
  const frame = { title: 'Delete the account', at: PATH, back: { href: PATH, label: 'General' } }
  if (deps.data.accounts.isLastOwner(id)) {
    const reason = 'This account is the only owner of the service: it cannot be deleted.'
    return page(context, { ...frame, main: parts.notice('note', html`<p>${reason}</p>`) })
  }
  const links = parts.plural(linkCount, 'link')
  const loss =
    linkCount === 0
      ? 'The account has no links.'
      : `${links} of the account stop working, also their printed QR codes.`
  return confirmPage(context, {
    ...frame,
    warning: html`<strong>${loss}</strong> Anybody can then claim its codes. This cannot be
      undone.`,
    fields: proofField(context),
    label: linkCount === 0 ? 'Delete the account' : `Delete the account and ${links}`,
  })
}
