import { type Address, BAD_DOMAIN } from '../../addresses/address.ts'
import { findUrl, withoutInvisible } from '../../addresses/pasted.ts'
import { typedAddress } from '../../addresses/resolve.ts'
import { AliasPath } from '../../addresses/schema.ts'
import { REFUSALS } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { rateLimited } from '../../http/guard.ts'
import { type Code, newCode, toCode } from '../../lib/code.ts'
import { type Html, html } from '../../lib/html.ts'
import { type NewLinkFields, reserve, shorten } from '../../links/create.ts'
import { BAD_TIMES, ShortenBody } from '../../links/schema.ts'
import { withScheme } from '../../links/url.ts'
import { type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import { atField, FormRefusal, isFormError, refuse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import {
  addressText,
  closeButton,
  domainChoices,
  linkPath,
  noOtherPaths,
  PATH_MAX,
  passcodeOnce,
  previewLink,
  qrPicture,
} from '../ui/link-parts.ts'
import { campaignFields, campaignWriter } from './campaign.ts'
import { BAD_ORDER, newPropertyFields, readNewProperties } from './link-properties.ts'

/** The form that creates one link, and the message with the result. */

/** A link that was just created, reserved or found. A reused link has no passcode to show. */
export interface Created {
  kind: 'created' | 'reused' | 'reserved'
  code: Code
  url: string | null
  passcode: string | null
}

/** The path of a new link. */
interface NewPath {
  address: Address
  /** A code, as it was typed, if the path has its form, else an alias. */
  fields: Pick<NewLinkFields, 'domain' | 'code' | 'aliases'>
}

export async function createLink(context: PageContext): Promise<Created> {
  const { deps, user, form } = context
  spendWrite(context)
  const path = readPath(context)
  const domain = readDomain(context)
  const fields: NewLinkFields = { ...readNewProperties(context), domain, ...path?.fields }
  const sent = campaignWriter(context)(form.text('url'))
  if (sent === '' && !path) throw refuseAt('url', 'Paste a URL, or choose a path to reserve.')
  if (sent === '') return reserveLink(context, fields)
  const { url } = await atField('url', () => parseWith(ShortenBody, { url: withScheme(sent) }))
  // A path asks for a further link to a URL that the account may have.
  const create = () => shorten(deps, user.account, url, fields, { reuse: !path })
  const created = await atPath(form.text('code'), create)
  const { code, passcode } = created
  return {
    kind: created.reused ? 'reused' : 'created',
    code: code as Code,
    url: url.text,
    passcode,
  }
}

async function reserveLink(
  { deps, user, form }: PageContext,
  { code, ...fields }: NewLinkFields,
): Promise<Created> {
  const free = code ?? newCode(deps.random)
  const create = () => reserve(deps, user.account, free, fields)
  const reserved = await atPath(form.text('code'), create)
  return { kind: 'reserved', code: reserved.code as Code, url: null, passcode: reserved.passcode }
}

const PATH_ERRORS = ['path_taken', 'path_differs_in_case']

/** Shows an error at the field that caused it. `path`: as it was typed. */
async function atPath<Result>(path: string, create: () => Promise<Result>): Promise<Result> {
  try {
    return await create()
  } catch (error) {
    if (!isFormError(error) || error instanceof FormRefusal) throw error
    if (error.code === 'code_in_use') throw refuseAt('code', REFUSALS.code_in_use.message(path))
    if (PATH_ERRORS.includes(error.code)) throw refuseAt('code', error.message)
    if (error.message === BAD_DOMAIN) {
      throw refuseAt('code', 'This account cannot use the domain. Choose another one.')
    }
    if (error.message === BAD_TIMES) throw refuseAt('expires_at', BAD_ORDER)
    return atField('url', () => Promise.reject(error))
  }
}

const readPath = (context: PageContext): NewPath | undefined => {
  const { deps, form } = context
  return newPath(context, form.text('code'), deps.addresses.idOf(form.text('domain')))
}

/**
 * The path in a text that a person has typed, on the domain `chosen` unless it names one. Throws
 * `FormRefusal` at `code` for a path that the account cannot have.
 */
export function newPath(
  { deps, user }: Pick<PageContext, 'deps' | 'user'>,
  text: string,
  chosen: number,
): NewPath | undefined {
  const { domainId: domain = chosen, path } = typedAddress(deps, text)
  if (path === '') return undefined
  const address = { domainId: domain, path }
  if (toCode(path)) return { address, fields: { domain, code: path } }
  const { aliasRules } = deps
  if (!aliasRules.mayAdd(user.account.id)) throw refuseAt('code', noOtherPaths(user, path))
  const { success, data, error } = AliasPath.safeParse(path)
  if (!success) throw refuseAt('code', pathProblem(error.issues[0]?.message))
  if (aliasRules.isReserved(data)) throw refuseAt('code', 'This path belongs to the service.')
  const alias = { domainId: domain, path: data }
  return { address: alias, fields: { domain, aliases: { add: [alias] } } }
}

/** The domain that the form names; undefined without a choice. */
const readDomain = ({ deps, form }: PageContext): number | undefined =>
  form.has('domain') ? deps.addresses.idOf(form.text('domain')) : undefined

const pathProblem = (message = ''): string => message.replace('Invalid aliases: a path', 'The path')

/** Charged like `/api/lookup`, so that it reveals no more codes per minute. */
export async function pathStatus({ deps, user, query }: PageContext): Promise<Html> {
  const named = typedAddress(deps, (query.code ?? '').trim())
  const { domainId = deps.addresses.idOf(query.domain ?? ''), path } = named
  if (path === '') return html``
  const code = toCode(path)
  const { aliasRules } = deps
  if (!code && !aliasRules.mayAdd(user.account.id)) return html`${noOtherPaths(user, path)}`
  const { data: alias, error } = AliasPath.safeParse(path)
  if (alias === undefined) return html`${pathProblem(error?.issues[0]?.message)}`
  const budget = deps.limiter.takeOf(user.account, 'read')
  if (!budget.allowed) throw rateLimited(budget)
  const domain = deps.addresses.findDomain(domainId)
  // Also finds codes without a link that the operator has disabled.
  const isTaken =
    (code && deps.destinations.findByCode(code) !== undefined) ||
    aliasRules.isReserved(alias) ||
    (domain && deps.data.aliases.findByPath(alias, domain) !== undefined) ||
    deps.data.aliases.isTaken({ domainId, path: alias })
  return isTaken
    ? html`<span class="badge bad">Taken</span>`
    : html`<span class="badge good">Free</span>`
}

/**
 * The URL from a bookmarklet or another app. Some apps send it within a text, or within `url`; a
 * bookmarklet's has no spaces and stays as it is.
 */
function sharedUrl({ url = '', text = '' }: Query): string | undefined {
  const given = withoutInvisible(url)
  if (/^https?:\/\/\S+$/i.test(given)) return given
  return findUrl(given) ?? findUrl(text) ?? (given || undefined)
}

/** `isFragment`: it replaces the form on the page. */
export function createForm(context: PageContext, isFragment: boolean): Html {
  const shared = sharedUrl(context.query)
  const url = typed(context, 'url', shared)
  const path = typed(context, 'code', context.query.code)
  const isRefused = context.refusal !== undefined && context.form.has('url')
  const properties = newPropertyFields(context, isRefused)
  const first = url.error ? 'url' : path.error ? 'code' : properties.hasError ? undefined : 'url'
  const domains = domainChoice(context)
  const isFilled = shared !== undefined || context.query.code !== undefined
  const isFocused = isFragment || isRefused || isFilled
  const focus = (name: string) => isFocused && name === first && { autofocus: true }
  return parts.form(
    context.user,
    '/app/links',
    [
      parts.urlField({
        ...url,
        label: 'Shorten a URL',
        extra: { placeholder: 'Paste a URL to shorten', ...focus('url') },
      }),
      domains,
      parts.field({
        ...path,
        label: 'Custom path (optional)',
        extra: {
          placeholder: 'Custom path',
          maxlength: PATH_MAX,
          spellcheck: 'false',
          autocapitalize: 'off',
          'hx-get': '/app/links/code',
          'hx-trigger': 'input changed delay:250ms',
          'hx-target': '#code-status',
          'hx-swap': 'innerHTML',
          // An aborted request would be an error in the console.
          'hx-sync': 'this:queue last',
          ...(domains && { 'hx-include': '#field-domain' }),
          'aria-describedby': path.error ? 'code-status field-code-error' : 'code-status',
          ...focus('code'),
        },
      }),
      parts.button('Shorten'),
      html`<p id="code-status" role="status"></p>`,
      html`<div class="more">${properties.markup}${campaignFields(context, url.value ?? '')}</div>`,
    ],
    {
      id: 'create',
      class: 'create',
      'hx-post': '/app/links',
      'hx-target': 'this',
      'hx-swap': 'outerHTML',
      // A second Enter must not replace the response with the passcode.
      'hx-sync': 'this:drop',
    },
  )
}

/** Absent for an account that may use no domain beside the primary one. */
function domainChoice({ deps, user, form, refusal, query }: PageContext): Html | false {
  const { domains } = deps.data
  const { id } = user.account
  const hosts = domains.listFor(id).map(({ host }) => host)
  if (hosts.length === 0) return false
  const standard = () => deps.addresses.namedHost(domains.defaultOf(id)) ?? ''
  const value = refusal && form.has('domain') ? form.text('domain') : (query.domain ?? standard())
  return parts.select({
    name: 'domain',
    label: 'Domain',
    value,
    choices: domainChoices(deps, hosts),
  })
}

const TITLES = {
  created: 'Your short link is ready',
  reused: 'You already have a short link for this URL',
  reserved: 'The path is yours',
}

/** The result, shown over the list. The script copies the address. */
export function createdToast({ deps, user }: PageContext, created: Created): Html {
  const { kind, code, url, passcode } = created
  const link = deps.data.links.findByCode(code)
  if (!link) throw refuse('The link was deleted meanwhile.')
  const { addresses } = deps
  const id = `new-${code}`
  const shown = addressText(addresses.display(link))
  const short = html`<data id="${id}" value="${addresses.display(link)}">${shown}</data>`
  const path = linkPath(code)
  return html`
    <section class="toast" aria-labelledby="toast-title" data-copy-now="${id}">
      <a href="${path}/qr" title="QR code options and downloads">
        ${qrPicture(code, 96)}</a>
      <div>
        <h2 id="toast-title">${TITLES[kind]}</h2>
        <p><a class="code" href="${path}">${short}</a>
          ${url !== null && previewLink(addresses.display(link))}</p>
        ${kind === 'reused' && html`<p>It stays as it was.</p>`}
        ${url === null && html`<p>It has no destination yet: set one on its page.</p>`}
        <div class="row">
          ${parts.copyButton(id, `short URL ${shown}`)}
          <a class="button plain" href="${path}/qr.png" download>Download QR code</a>
          <a class="button plain" href="/app/links" data-close>Create another</a>
          ${
            kind !== 'reused' &&
            parts.buttonForm(user, `${path}/delete`, 'Undo', { title: `Undo: delete ${shown}` })
          }
        </div>
        ${
          passcode !== null &&
          html`<details><summary>For the API: passcode, shown once</summary>
            ${passcodeOnce(passcode)}</details>`
        }
      </div>
      ${closeButton()}
    </section>`
}
