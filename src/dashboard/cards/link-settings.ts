import { type Address, isSameAddress } from '../../addresses/address.ts'
import { ALIASES_MAX, type AliasPatch } from '../../addresses/names.ts'
import { typedAddress } from '../../addresses/resolve.ts'
import { AliasPath } from '../../addresses/schema.ts'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { attributes, type Html, html, type Value } from '../../lib/html.ts'
import type { Link, ParsedUrl } from '../../links/link.ts'
import { type LinkChange, propertiesOf } from '../../links/link-change.ts'
import { changeLink } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import { publicToken } from '../../links/public-pages.ts'
import { PropertiesBody, ShortenBody } from '../../links/schema.ts'
import { updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import { authorOf, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { FormRefusal, isFormError, isTemporary, refuse, wordingOf } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import {
  addressText,
  badge,
  domainChoices,
  linkPath,
  noOtherPaths,
  PATH_MAX,
  replacesMain,
} from '../ui/link-parts.ts'
import { campaignFields, campaignWriter } from './campaign.ts'
import { passwordFields, typedPassword } from './link-password.ts'
import {
  fingerprint,
  isChanged,
  propertyFields,
  readChanges,
  refusedField,
  tagOptions,
} from './link-properties.ts'

/** What can be changed about a link, as one form. A field that is not sent changes nothing. */

const SETTINGS_DONE = 'Saved. It takes effect immediately, also for printed QR codes.'

/** The fields that may be refused, in the order of the form. */
const FIELDS = [
  'title',
  'url',
  'tags',
  'note',
  'add',
  'starts_at',
  'expires_at',
  'max_hits',
  'expired_url',
  'link_password',
] as const

/** Throws `quota_exceeded`, and `FormRefusal` for all bad fields: then nothing is saved. */
export async function saveSettings(context: PageContext, link: Link): Promise<void> {
  const { deps, user } = context
  const { body, errors } = readChanges(context)
  const wrong: Record<string, string> = { ...errors }
  const read = <Result>(name: string, parse: () => Result): Result | undefined => {
    try {
      return parse()
    } catch (error) {
      if (!isFormError(error)) throw error
      Object.assign(wrong, error instanceof FormRefusal ? error.errors : { [name]: error.message })
      return undefined
    }
  }
  const url = read('url', () => typedUrl(context, link))
  const refusal = url && url.text !== link.url && deps.blocklist.refusalOf(url)
  if (refusal) wrong.url = wordingOf(refusal)
  const aliases = read('add', () => typedAliases(context))
  const password = read('link_password', () => typedPassword(context))
  if (Object.keys(wrong).length > 0) throw new FormRefusal(wrong)
  const change: LinkChange = {
    ...propertiesOf(deps.addresses, PropertiesBody.parse(body)),
    domain: typedDomain(context),
    password,
    aliases,
  }
  const hasChange = Object.values(change).some((value) => value !== undefined)
  if (hasChange) await changeOne(context, link, change)
  try {
    if (url) await updateOwnedLink(deps, user.account, { code: link.code, url })
  } catch (error) {
    if (!hasChange || !isFormError(error) || isTemporary(error)) throw error
    throw refuse(`All but the destination was saved. ${wordingOf(error)}`)
  }
  await savePublicPage(context, link)
}

/** Undefined: neither the URL nor its campaign was changed. Throws `AppError` for a bad one. */
function typedUrl(context: PageContext, link: Link): ParsedUrl | undefined {
  const { form } = context
  const text = form.text('url')
  const isFirst = link.url === null && text === ''
  if (!form.has('url') || isFirst) return undefined
  const url = campaignWriter(context)(text)
  if (url === text && !isChanged(form, 'url')) return undefined
  return parseWith(ShortenBody, { url: withScheme(url) }).url
}

/** A path to add, paths to remove, and the one that people see if another was chosen. */
function typedAliases({ deps, form }: PageContext): AliasPatch | undefined {
  const { addresses } = deps
  const add = form.text('add')
  const remove = form.all('remove').filter(Boolean)
  const isShown = form.has('display') && form.text('display') !== form.text('was_display')
  if (add === '' && remove.length === 0 && !isShown) return undefined
  return {
    add: add === '' ? [] : [typedAlias(deps, add, form.text('on'))],
    remove: remove.map(addresses.parse),
    display: isShown ? addresses.parse(form.text('display')) : undefined,
  }
}

/** A path on the chosen domain, or the whole short URL that is printed somewhere. */
function typedAlias(deps: DashboardDeps, text: string, chosen: string): Address {
  const { domainId = deps.addresses.idOf(chosen), path } = typedAddress(deps, text)
  return { domainId, path: parseWith(AliasPath, path) }
}

/** The chosen domain; an empty text is the primary one. */
function typedDomain({ deps, form }: PageContext): number | undefined {
  const [before] = form.all('was_domain')
  const host = form.text('domain')
  return form.has('domain') && host !== before ? deps.addresses.idOf(host) : undefined
}

async function changeOne(context: PageContext, { code }: Link, change: LinkChange): Promise<void> {
  const { deps, user } = context
  try {
    await changeLink(deps, user.account, code, change)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const isOfAlias = /^(path_taken|path_differs_in_case|invalid_value)$/.test(error.code)
    const alias = change.aliases && isOfAlias && new FormRefusal({ add: error.message })
    throw refusedField(error, change) ?? (alias || error)
  }
}

export async function settingsCards(
  context: PageContext,
  link: Link,
  properties: LinkProperties,
): Promise<Html> {
  const { user, query, refusal } = context
  const errors = refusal instanceof FormRefusal ? refusal.errors : {}
  const focus = FIELDS.find((name) => errors[name])
  const { field, rules } = propertyFields(context, properties, focus)
  const path = linkPath(link.code)
  const action = `${path}/settings`
  const state = refusal
    ? html`<p class="error">${refusal.message}</p>`
    : query.done === 'saved' && html`<p class="done" role="status">${SETTINGS_DONE}</p>`
  return html`<div class="settings">
    ${parts.form(
      user,
      action,
      [
        section('destination', 'Link', [
          field('title'),
          urlFields(context, link, focus),
          field('tags'),
          await tagOptions(context),
          field('note'),
        ]),
        section('addresses', 'Addresses', addressFields(context, link, focus)),
        section('schedule', 'Schedule and limits', rules),
        section('password', 'Password', [
          // Else password managers would store it as that of the account.
          html`<input name="username" value="${link.code}" autocomplete="username" hidden>`,
          passwordFields(context, properties, focus),
        ]),
        section('public', 'Public page', publicFields(context, link)),
        html`<div class="save-bar row">
          ${parts.button('Save', 'primary', { id: 'save-settings' })}${state}</div>`,
      ],
      // The page stays where it was scrolled to.
      {
        ...replacesMain(action),
        'hx-swap': 'outerHTML',
        class: 'form card',
        'data-asks': refusal ? 'unsaved' : true,
      },
    )}
    <section class="card" aria-labelledby="danger-title">
      <div class="row apart">
        <h2 id="danger-title">Delete this link</h2>
        ${parts.linkButton('Delete…', `${path}/delete`, 'danger')}
      </div>
      <p class="hint">It stops working, and its code becomes free for everybody.</p>
    </section>
  </div>`
}

const section = (id: string, title: string, children: Value): Html => html`
  <section class="part" id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${children}
  </section>`

function urlFields(context: PageContext, link: Link, focus: string | undefined): Html {
  const { form, refusal } = context
  const url = typed(context, 'url', link.url ?? '')
  const before = refusal && form.has('was_url') ? form.text('was_url') : fingerprint(link.url ?? '')
  // The secrets of the form are not sent for the fields of a campaign.
  return html`<div hx-params="not link_password,note,title,tags">
    ${parts.hiddenFields({ was_url: before })}
    ${parts.urlField({
      ...url,
      label: 'Destination',
      required: link.url !== null,
      extra: { autofocus: focus === 'url' },
    })}
    ${campaignFields(context, url.value ?? '')}
  </div>`
}

/** The code and the aliases, one of which is shown, and a field for a new one. */
function addressFields(context: PageContext, link: Link, focus: string | undefined): Html {
  const { deps, user, form, refusal } = context
  const { addresses } = deps
  const all = deps.data.aliases.ofLink(link.id)
  const mayHave = deps.aliasRules.mayAdd(user.account.id)
  const shown = link.alias === null ? '' : addresses.textOf(link.alias)
  const chosen = refusal && form.has('display') ? form.text('display') : shown
  const row = (alias: Address): Html => {
    const name = addresses.textOf(alias)
    const address = addressText(addresses.alias(alias))
    const isGone = refusal !== undefined && form.all('remove').includes(name)
    const pick = { type: 'radio', name: 'display', value: name, checked: name === chosen }
    const remove = { name: 'remove', value: name, checked: isGone }
    return html`<li>
      <label class="address"><input ${attributes(pick)}> <span>${address}</span></label>
      ${badge({ label: 'Shown', kind: 'good' })}
      <label class="remove"><input type="checkbox" ${attributes(remove)}
        aria-label="Remove ${address}"> Remove</label>
    </li>`
  }
  const isCodeShown = !all.some((alias) => link.alias && isSameAddress(alias, link.alias))
  return html`
    <p class="hint">All of them lead to the destination. The one that is marked is used in lists,
      when you copy the link, and for its QR code. A new one is shown as you type it, and works in
      any letter case.</p>
    ${parts.hiddenFields({ was_display: shown })}
    <ul class="plain-list addresses">
      <li class="of-code"><span class="address">${codeAddress(context, link)}</span>
        ${isCodeShown && badge({ label: 'Shown', kind: 'good' })}</li>
      ${all.map(row)}
    </ul>
    ${mayHave || html`<p class="hint">${noOtherPaths(user, '')}</p>`}
    ${mayHave && all.length < ALIASES_MAX && newAddress(context, link, focus)}`
}

/** The domain of the code can be chosen where there is more than one. */
function codeAddress({ deps, user, form, refusal }: PageContext, link: Link): Value {
  const { addresses } = deps
  const address = addressText(addresses.withCode(link))
  const hosts = deps.data.domains.listFor(user.account.id).map(({ host }) => host)
  const host = addresses.namedHost(link.domainId) ?? ''
  const all = host === '' || hosts.includes(host) ? hosts : [...hosts, host]
  if (all.length === 0) return address
  return html`${parts.hiddenFields({ was_domain: host })}${parts.menu({
    name: 'domain',
    label: 'Domain of the code',
    value: refusal && form.has('domain') ? form.text('domain') : host,
    choices: domainChoices(deps, all),
  })}<span>${address.slice(address.indexOf('/'))}</span>`
}

function newAddress(context: PageContext, link: Link, focus: string | undefined): Html {
  const { deps, user, form } = context
  const { addresses } = deps
  const hosts = deps.data.domains.listFor(user.account.id).map(({ host }) => host)
  const domain = parts.menu({
    name: 'on',
    label: 'Domain of the new address',
    value: form.has('on') ? form.text('on') : (addresses.namedHost(link.domainId) ?? ''),
    choices: domainChoices(deps, hosts),
  })
  const [{ label = '' } = {}] = domainChoices(deps, [])
  return html`<div class="new-address">
    <span class="address">${hosts.length > 0 ? domain : label}<span>/</span></span>
    ${parts.field({
      ...typed(context, 'add'),
      label: 'New address',
      extra: {
        maxlength: PATH_MAX,
        placeholder: 'spring-sale',
        spellcheck: 'false',
        autofocus: focus === 'add',
      },
    })}
    ${parts.button('Add', 'plain')}
  </div>`
}

/** What a form sends as the state that its page showed. */
const publicState = (page: { showsUrl: number } | undefined): string =>
  page ? `on${page.showsUrl}` : 'off'

/** Creates, changes or ends the public page, if the form wants another state than it showed. */
async function savePublicPage(context: PageContext, { id: linkId, code }: Link): Promise<void> {
  const { deps, form } = context
  if (!form.has('was_public')) return
  const isOn = form.has('public')
  const showsUrl = form.has('public_url')
  const isNew = form.has('public_new')
  const wanted = publicState(isOn ? { showsUrl: showsUrl ? 1 : 0 } : undefined)
  if (wanted === form.text('was_public') && !(isOn && isNew)) return
  const { publicPages } = deps.data
  const author = authorOf(context)
  if (!isOn) return publicPages.unshare({ author, linkId })
  const seed = deps.random(SEED_BYTES)
  if (!(await publicPages.share({ author, linkId, seed, isNew, showsUrl }))) {
    throw new AppError('code_not_found', code)
  }
}

const SEED_BYTES = 32

function publicFields({ deps, form, refusal }: PageContext, link: Link): Html {
  const stored = deps.data.publicPages.findByLink(link.id)
  const isSent = refusal !== undefined && form.has('was_public')
  const check = (name: string, label: string, isChecked: boolean) =>
    parts.checkbox({ name, label, isChecked: isSent ? form.has(name) : isChecked })
  const address = stored && `${deps.baseUrl}/app/shared/${publicToken(deps.hasher, stored)}`
  return html`
    <p class="hint">The hits of the last week and where they come from, for everybody who has its
      secret address. Search engines do not list it.</p>
    ${parts.hiddenFields({ was_public: isSent ? form.text('was_public') : publicState(stored) })}
    ${check('public', 'Show the page', stored !== undefined)}
    ${check('public_url', 'Show the destination on it', stored?.showsUrl === 1)}
    ${
      address &&
      html`<div class="field">
        <label for="public-address">Its address</label>
        <div class="copy">
          <input id="public-address" readonly value="${address}">
          ${parts.copyButton('public-address', 'the address of the public page')}
          ${parts.linkButton('Open', address)}
        </div>
      </div>
      ${check('public_new', 'Replace the address, so that the present one stops working', false)}`
    }`
}
