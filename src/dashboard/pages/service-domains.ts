import { DOMAINS_MAX, type Domain, type DomainUses } from '../../addresses/domains.ts'
import { addDomain, type DomainInput, removeDomain, setDomain } from '../../addresses/operations.ts'
import { readableHost } from '../../addresses/shown-host.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { withScheme } from '../../links/url.ts'
import { ownerOf, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { FormRefusal, isFormError, isTemporary, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, type Form, typed } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { line } from '../ui/service-parts.ts'
import { appsPath } from './service-apps.ts'

const PATH = '/app/service/domains'

/** The domains of short links beside that of `BASE_URL`, for the owners of the service. */
export const serviceDomainsPages = signedInPages({
  'GET /app/service/domains': owner(listPage, {
    offers: [{ label: 'Domains', section: 'service' }],
  }),
  'POST /app/service/domains': owner(async (context) => {
    const { deps, user } = context
    const { host } = await atOwnField(() => addDomain(deps, ownerOf(context), fieldsOf(context)))
    deps.log.info('domain.added', { account_id: user.account.id, host })
    return `${PATH}/${host}?done=added`
  }, listPage),
  'GET /app/service/domains/:host': owner(domainPage),
  'POST /app/service/domains/:host': owner(async (context) => {
    const { deps, user } = context
    const domain = requireDomain(context)
    const { host } = domain
    await atOwnField(() =>
      setDomain(deps, ownerOf(context), { ...fieldsOf(context, domain), host }),
    )
    deps.log.info('domain.changed', { account_id: user.account.id, host })
    return `${PATH}/${host}?done=changed`
  }, domainPage),
  'POST /app/service/domains/:host/remove': owner(async (context) => {
    const { deps, user, form } = context
    const { host } = requireDomain(context)
    const movesLinks = form.text('moves_links') === '1'
    await atOwnField(
      () => removeDomain(deps, ownerOf(context), { host, movesLinks }),
      'moves_links',
    )
    deps.log.info('domain.removed', { account_id: user.account.id, host })
    return `${PATH}?done=removed`
  }, domainPage),
})

const DONE = {
  added: 'The domain is added. Short links answer on it as soon as its name leads to this service.',
  changed: 'Saved. It takes effect immediately.',
  removed: 'The domain is removed.',
}

/** The texts of the form as the operations and the command take them. */
const fieldsOf = ({ deps, form }: PageContext, before?: Domain): DomainInput => ({
  host: form.text('host'),
  codes: form.text('codes') === 'all' ? 'all' : 'own',
  for: usersOf(deps, form, before),
  rootUrl: withScheme(form.text('root_url')) || null,
  notFoundUrl: withScheme(form.text('not_found_url')) || null,
})

function usersOf(deps: DashboardDeps, form: Form, before?: Domain): DomainInput['for'] {
  const chosen = form.text('for')
  if (chosen !== 'account') return chosen === 'all' ? 'all' : 'owners'
  const email = form.text('email')
  if (before?.accountId && email === accessText(deps, before)) return before.accountId
  const person = deps.data.accounts.findByEmail(email)
  if (!person) throw refuseAt('email', 'Nobody with an account has this address.')
  return person.accountId
}

const FIELDS = { root_url: /root.url/i, not_found_url: /not.found.url/i, email: /account|e-?mail/i }

/** Shows a refusal at the field that it names. */
async function atOwnField<Result>(run: () => Promise<Result>, field = 'host'): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    const isPlaced = error instanceof FormRefusal
    if (isPlaced || !isFormError(error) || isTemporary(error)) throw error
    const named = Object.entries(FIELDS).find(([, pattern]) => pattern.test(error.message))
    throw refuseAt(field === 'host' ? (named?.[0] ?? field) : field, error.message)
  }
}

const primaryOf = ({ baseUrl }: DashboardDeps): string => new URL(baseUrl).hostname

async function listPage(context: PageContext): Promise<Response> {
  const { deps } = context
  const domains = deps.data.domains.list()
  const uses = await deps.data.domains.countUses({})
  return page(context, {
    title: 'Domains',
    at: PATH,
    messages: DONE,
    main: html`
      ${parts.card('Domains of short links', [
        html`<p><strong>${readableHost(primaryOf(deps))}</strong> is the primary domain
          (<code>BASE_URL</code>): it answers every code, and has the dashboard and the API. Other
          domains have short links only. <a href="${appsPath(primaryOf(deps))}">Its apps</a></p>`,
        domains.length > 0 && domainTable(deps, domains, uses),
      ])}
      <div class="columns cards">
        ${
          domains.length < DOMAINS_MAX &&
          parts.card(
            'Add a domain',
            parts.form(context.user, PATH, [
              parts.field({
                ...typed(context, 'host'),
                label: 'Domain',
                hint: 'A name that you own. One with a website loses it here: choose one below it.',
                required: true,
                extra: { maxlength: 300, placeholder: 'go.example', spellcheck: 'false' },
              }),
              domainFields(context, undefined),
              parts.button('Add the domain'),
            ]),
          )
        }
        ${parts.card('What a domain needs', needs(deps, 'go.example'))}
      </div>`,
  })
}

/** By the id of each domain. */
type Uses = Readonly<Record<number, DomainUses>>

const ACCESS = { owners: 'Owners of the service', all: 'All accounts' } as const

const domainTable = (deps: DashboardDeps, domains: readonly Domain[], uses: Uses): Html =>
  parts.table(
    'Further domains',
    domains,
    {
      Domain: ({ host }) => line(readableHost(host), `${PATH}/${host}`),
      Answers: ({ codes }) => (codes === 'all' ? 'every code' : 'its own links'),
      For: (domain) => line(accessText(deps, domain)),
      Links: { cell: ({ id }) => parts.count(uses[id]?.links ?? 0), isNumber: true },
      Aliases: { cell: ({ id }) => parts.count(uses[id]?.aliases ?? 0), isNumber: true },
    },
    { widths: '- m l s s' },
  )

const accessText = ({ data }: DashboardDeps, { access, accountId }: Domain): string =>
  access === 'account'
    ? (accountId !== null && data.accounts.findById(accountId)?.name) || 'a deleted account'
    : ACCESS[access]

/** The fields that can be changed later too. */
function domainFields(context: PageContext, domain: Domain | undefined): Html {
  const { form, refusal, deps } = context
  const chosen = (name: string, stored: string) => (refusal ? form.text(name) : '') || stored
  const access = chosen('for', domain?.access ?? 'owners')
  const email = domain?.access === 'account' ? accessText(deps, domain) : ''
  return html`
    ${parts.radios({
      name: 'codes',
      label: 'Which codes it answers',
      value: chosen('codes', domain?.codes ?? 'own'),
      choices: [
        { value: 'own', label: 'Those of its own links' },
        { value: 'all', label: 'All: for an old domain whose codes are printed' },
      ],
    })}
    ${parts.radios({
      name: 'for',
      label: 'Who may use it for links',
      value: access,
      choices: [
        ...Object.entries(ACCESS).map(([value, label]) => ({ value, label })),
        { value: 'account', label: 'One account' },
      ],
    })}
    ${parts.emailField({
      ...typed(context, 'email', email),
      label: 'E-mail address of that account',
      autocomplete: 'off',
    })}
    ${parts.urlField({
      ...typed(context, 'root_url', domain?.rootUrl ?? ''),
      label: 'Destination of the domain itself (optional)',
      hint: 'Where visitors of / are redirected. Without it they get “404 Not found”.',
    })}
    ${parts.urlField({
      ...typed(context, 'not_found_url', domain?.notFoundUrl ?? ''),
      label: 'Destination of unknown paths (optional)',
    })}`
}

function requireDomain({ deps, params }: PageContext): Domain {
  const domain = deps.data.domains.findByHost(params.host ?? '')
  if (!domain) throw new AppError('page_not_found')
  return domain
}

async function domainPage(context: PageContext): Promise<Response> {
  const { deps, user } = context
  const domain = requireDomain(context)
  const uses = await deps.data.domains.countUses({})
  const { host } = domain
  return page(context, {
    title: readableHost(host),
    at: PATH,
    back: { href: PATH, label: 'Domains' },
    messages: DONE,
    main: html`
      <div class="columns cards">
        ${parts.card(
          'Settings',
          parts.form(user, `${PATH}/${host}`, [
            domainFields(context, domain),
            parts.button('Save'),
          ]),
        )}
        ${parts.card('What the domain needs', needs(deps, host))}
      </div>
      ${parts.card(
        'Apps',
        html`<p><a href="${appsPath(host)}">Files by which phones open an app</a> for short links of
          the domain.</p>`,
      )}
      ${parts.card('Remove the domain', removeForm(context, domain, uses))}`,
  })
}

/** The steps outside of this service. */
const needs = (deps: DashboardDeps, host: string): Html => html`
  <ol>
    <li><strong>DNS.</strong> Where you bought the name, add a <code>CNAME</code> record of
      <code>${host}</code> that points to <code>${primaryOf(deps)}</code>. A name without a part in
      front, such as example.com, needs <code>A</code> and <code>AAAA</code> records with the
      addresses of this server instead.</li>
    ${deps.certificates ? NEEDS_NO_PROXY : NEEDS_OF_PROXY}
  </ol>
  <p class="hint">DNS changes can take an hour.</p>`

const NEEDS_NO_PROXY = html`<li><strong>Certificate.</strong> The service gets it itself:
  <a href="/app/service">Service → Health</a> shows when.</li>`

const NEEDS_OF_PROXY = html`
    <li><strong>Certificate.</strong> Caddy with our <code>domains.caddy</code> gets it at the first
      visit. For nginx, run <code>certbot</code> and use <code>nginx-domains.conf</code>.</li>
    <li><strong>Host.</strong> The proxy passes the header <code>Host</code> on as it came.</li>`

function removeForm(context: PageContext, { id, host }: Domain, uses: Uses): Html {
  const { user, refusal } = context
  const { links = 0, aliases = 0 } = uses[id] ?? {}
  const isUsed = links + aliases > 0
  const used = `${parts.plural(links, 'link')} and ${parts.plural(aliases, 'alias', 'aliases')}`
  const problem = errorOf(refusal, 'moves_links')
  return html`
    ${
      isUsed
        ? html`<p><strong>${used} use it.</strong> Codes that are printed with
            <code>${host}</code> stop working when it is removed. Its links then have the primary
            domain.</p>`
        : html`<p>No link uses it.</p>`
    }
    <p class="hint">Remove its record from DNS first, and the name from a proxy: until then, it
      answers short links.</p>
    ${problem !== undefined && html`<p class="error" role="alert">${problem}</p>`}
    ${parts.form(user, `${PATH}/${host}/remove`, [
      isUsed && parts.checkbox({ name: 'moves_links', label: `Give ${used} the primary domain` }),
      parts.button('Remove the domain', 'danger'),
    ])}`
}
