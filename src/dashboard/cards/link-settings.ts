import { type Address, isSameAddress } from '../../addresses/address.ts'
import { ALIASES_MAX } from '../../addresses/names.ts'
import { typedAddress } from '../../addresses/resolve.ts'
import { AliasPath } from '../../addresses/schema.ts'
import { parseWith } from '../../http/body.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { changeLink, changeProperties } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import { ShortenBody } from '../../links/schema.ts'
import { updateOwnedLink } from '../../links/update.ts'
import { withScheme } from '../../links/url.ts'
import type { PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { atField } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import {
  addressText,
  badge,
  domainChoices,
  linkPath,
  noOtherPaths,
  replacesMain,
} from '../ui/link-parts.ts'
import { campaignFields, campaignWriter } from './campaign.ts'
import { linkPasswordCard, saveLinkPassword } from './link-password.ts'
import { propertiesForm, saveProperties } from './link-properties.ts'

/** What can be changed about a link: destination, properties, addresses, public page. */

interface SettingsForm {
  change: (context: PageContext, link: Link) => Promise<unknown>
  /** The id of the card that contains the form, and then the confirmation. */
  card: string
  done: string
}

/** By the last part of the path of the form. */
export const SETTINGS_FORMS = {
  destination: {
    change: saveDestination,
    card: 'destination',
    done: 'Saved. It takes effect immediately, also for printed QR codes.',
  },
  properties: { change: saveProperties, card: 'properties', done: 'Saved.' },
  password: { change: saveLinkPassword, card: 'password', done: 'Saved.' },
  aliases: { change: saveAliases, card: 'addresses', done: 'Saved.' },
  domain: { change: saveDomain, card: 'domain', done: 'Saved. Its QR code has the new domain.' },
} satisfies Record<string, SettingsForm>

/** The confirmation of a change, where it was made. */
const doneText = ({ query }: PageContext, name: keyof typeof SETTINGS_FORMS): Html | false =>
  query.done === name && html`<p class="done" role="status">${SETTINGS_FORMS[name].done}</p>`

export async function settingsCards(
  context: PageContext,
  link: Link,
  properties: LinkProperties,
): Promise<Html> {
  return html`
    ${destinationCard(context, link)}
    ${await propertiesForm(context, link, properties, doneText(context, 'properties'))}
    ${linkPasswordCard(context, link, properties, doneText(context, 'password'))}
    ${addressCard(context, link)}
    ${domainCard(context, link)}
    ${publicPageCard(context, link)}`
}

async function saveDestination(context: PageContext, { code }: Link): Promise<void> {
  const { deps, user, form } = context
  const sent = campaignWriter(context)(form.text('url'))
  await atField('url', () => {
    const { url } = parseWith(ShortenBody, { url: withScheme(sent) })
    return updateOwnedLink(deps, user.account, { code, url })
  })
}

function destinationCard(context: PageContext, link: Link): Html {
  const { user } = context
  const url = typed(context, 'url', link.url ?? '')
  const action = `${linkPath(link.code)}/destination`
  const isFirst = link.url === null
  return html`<section class="card" id="destination">
    <h2>Destination</h2>
    ${parts.form(
      user,
      action,
      [
        parts.urlField({
          ...url,
          label: 'Long URL',
          required: true,
          hint: 'Takes effect immediately. The short URL and its QR code stay the same.',
          extra: { autofocus: url.error !== undefined },
        }),
        campaignFields(context, url.value ?? ''),
        html`<div class="row">${parts.button(
          isFirst ? 'Set the destination' : 'Change the destination',
          isFirst ? 'primary' : 'plain',
        )}${doneText(context, 'destination')}</div>`,
      ],
      replacesMain(action),
    )}
  </section>`
}

/** Adds the path in `add`, removes the one in `remove`, or shows the one in `display`. */
async function saveAliases(context: PageContext, { code }: Link): Promise<void> {
  const { deps, user, form } = context
  const add = form.text('add')
  const aliases = {
    add: add === '' ? [] : [typedAlias(deps, add, form.text('on'))],
    remove: [deps.addresses.parse(form.text('remove'))],
    display: form.has('display') ? deps.addresses.parse(form.text('display')) : undefined,
  }
  await atField('add', () => changeLink(deps, user.account, code, { aliases }))
}

/** Gives the link the domain in `domain`; an empty text is the primary one. */
async function saveDomain({ deps, user, form }: PageContext, { code }: Link): Promise<void> {
  const domain = deps.addresses.idOf(form.text('domain'))
  await changeProperties(deps, user.account, [code], { domain })
}

/** A path on the chosen domain, or the whole short URL that is printed somewhere. */
function typedAlias(deps: DashboardDeps, text: string, chosen: string): Address {
  const { domainId = deps.addresses.idOf(chosen), path } = typedAddress(deps, text)
  return { domainId, path: parseWith(AliasPath, path) }
}

function addressCard(context: PageContext, link: Link): Html {
  const { deps, user } = context
  const { aliasRules, addresses } = deps
  const all = deps.data.aliases.ofLink(link.id)
  const mayHave = aliasRules.mayAdd(user.account.id)
  const mayAdd = mayHave && all.length < ALIASES_MAX
  const action = `${linkPath(link.code)}/aliases`
  const hosts = deps.data.domains.listFor(user.account.id).map(({ host }) => host)
  const row = (alias: Address): Html => {
    const isShown = link.alias !== null && isSameAddress(alias, link.alias)
    const name = addresses.textOf(alias)
    const address = addressText(addresses.alias(alias))
    const display = { values: { display: name }, title: `Show ${address}` }
    const remove = { values: { remove: name }, title: `Remove ${address}` }
    return html`<li class="row">
      <code>${address}</code>
      ${isShown && badge({ label: 'Shown', kind: 'good' })}
      ${!isShown && parts.buttonForm(user, action, 'Show this one', display)}
      ${parts.buttonForm(user, action, 'Remove', remove)}
    </li>`
  }
  return html`<section class="card" id="addresses">
    <h2>Addresses</h2>
    <p class="hint">All of them lead to the destination. The one that is shown is used in lists,
      when you copy the link, and for its QR code.</p>
    <ul class="plain-list">
      <li class="row"><code>${addressText(addresses.withCode(link))}</code>
        ${link.alias === null && badge({ label: 'Shown', kind: 'good' })}</li>
      ${all.map(row)}
    </ul>
    ${mayHave || html`<p class="hint">${noOtherPaths(user, '')}</p>`}
    ${
      mayAdd &&
      parts.form(user, action, [
        hosts.length > 0 &&
          parts.select({
            name: 'on',
            label: 'Domain',
            value: addresses.namedHost(link.domainId) ?? '',
            choices: domainChoices(deps, hosts),
          }),
        parts.field({
          ...typed(context, 'add'),
          label: 'New address',
          hint: 'A path such as spring-sale. It is shown as you type it, and works in any case.',
          autocomplete: 'off',
          extra: { maxlength: 1000, placeholder: 'spring-sale', spellcheck: 'false' },
        }),
        parts.button('Add', 'plain'),
      ])
    }
    ${doneText(context, 'aliases')}
  </section>`
}

/** Absent where there is nothing to choose. */
function domainCard(context: PageContext, link: Link): Html | false {
  const { deps, user } = context
  const hosts = deps.data.domains.listFor(user.account.id).map(({ host }) => host)
  const host = deps.addresses.namedHost(link.domainId) ?? ''
  const all = host === '' || hosts.includes(host) ? hosts : [...hosts, host]
  if (all.length === 0) return false
  const action = `${linkPath(link.code)}/domain`
  const form = parts.form(user, action, [
    parts.select({
      name: 'domain',
      label: 'Domain of the code',
      value: host,
      choices: domainChoices(deps, all),
    }),
    html`<div class="row">
      ${parts.button('Change the domain', 'plain')}${doneText(context, 'domain')}</div>`,
  ])
  return html`<section class="card" id="domain">
    <h2>Domain</h2>
    <p class="hint">The short URL with the code has it. It also works on the primary domain.</p>
    ${form}
  </section>`
}

/** The part of a link's settings that creates and ends its public page. */
function publicPageCard({ deps, user, query }: PageContext, link: Link): Html {
  const path = linkPath(link.code)
  const stored = deps.data.publicPages.findByLink(link.id)
  const off = html`<p class="hint">Shows the hits and visitors of this link to everybody who has its
    secret address. Search engines do not list it.</p>`
  const on = html`<p>The page is on${
    stored?.showsUrl === 1 && ', with the destination'
  }. A new address replaces the present one.</p>`
  return html`<section class="card" id="public"><h2>Public page</h2>${[
    stored ? on : off,
    parts.form(user, `${path}/share`, [
      parts.checkbox({
        name: 'url',
        label: 'Show the destination',
        isChecked: stored?.showsUrl === 1,
      }),
      parts.button(stored ? 'New address' : 'Create the page', 'plain'),
    ]),
    stored && parts.buttonForm(user, `${path}/unshare`, 'Switch it off'),
    query.done === 'unshared' &&
      html`<p class="done" role="status">The page is off. Its address no longer works.</p>`,
  ]}</section>`
}
