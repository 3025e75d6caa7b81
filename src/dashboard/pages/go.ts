import { pastedSearch } from '../../addresses/resolve.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { withDetails } from '../../links/properties.ts'
import { SEARCH_MAX } from '../../lists/schema.ts'
import type { Offer } from '../auth/access.ts'
import type { CurrentUser, PageContext } from '../auth/guard.ts'
import { signedInPages } from '../page-routes.ts'
import { htmlResponse } from '../responses.ts'
import { page, SECTIONS, wantsFragment } from '../ui/layout.ts'
import { addressText, linkPath } from '../ui/link-parts.ts'

/** “Go to”: a link, a page or an action by a part of its name. Ctrl+K opens it over any page. */

const PATH = '/app/go'
const LINKS_MAX = 7

export const goPages = signedInPages({
  'GET /app/go': {
    role: 'viewer',
    offers: [{ label: 'API documentation', href: '/docs', words: 'openapi swagger' }],
    run: async (context) => {
      const { request } = context
      if (!wantsFragment(request)) return goPage(context)
      const options = await optionsOf(context)
      // The script asks for the dialog once, and htmx for the options as often as the text changes.
      const isUpdate = request.headers.get('hx-target') === 'go-options'
      return htmlResponse(isUpdate ? options : dialogOf(context, options))
    },
  },
})

async function goPage(context: PageContext): Promise<Response> {
  const options = await optionsOf(context)
  return page(context, { title: 'Go to', main: searchOf(context, options) })
}

const dialogOf = (context: PageContext, options: Html): Html => html`
  <dialog id="go" class="dialog go" aria-label="Go to" closedby="any">
    ${searchOf(context, options)}
    <p class="hint">↑ ↓ to choose, Enter to open, Esc to close</p>
  </dialog>`

function searchOf({ query }: PageContext, options: Html): Html {
  const field = attributes({
    id: 'go-text',
    name: 'q',
    type: 'text',
    value: query.q ?? '',
    role: 'combobox',
    'aria-label': 'A link, a page or an action',
    'aria-expanded': 'true',
    'aria-controls': 'go-options',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: SEARCH_MAX,
    placeholder: 'Go to a link, a page or an action',
  })
  return html`
    <form method="get" action="${PATH}" role="search" hx-get="${PATH}" hx-target="#go-options"
      hx-swap="outerHTML" hx-trigger="submit, input changed delay:150ms" hx-sync="this:replace">
      <input ${field}>
    </form>
    ${options}`
}

interface Option {
  label: string
  href: string
  about: string
}

async function optionsOf(context: PageContext): Promise<Html> {
  const text = [...(context.query.q ?? '').trim()].slice(0, SEARCH_MAX).join('')
  const pages = findOffers(context.user, text)
  const links = text === '' ? [] : await findLinks(context, text)
  // Who types the beginning of a page's name means the page.
  const isMeant = ({ label }: Option) => label.toLowerCase().startsWith(text.toLowerCase())
  const sorted = [...pages.filter(isMeant), ...links, ...pages.filter((one) => !isMeant(one))]
  const options = sorted.map(({ label, href, about }, at) => {
    const all = { id: `go-${at}`, role: 'option', href, tabindex: '-1' }
    return html`<a ${attributes({ ...all, 'aria-selected': String(at === 0) })}>
      <span>${label}</span> <small>${about}</small></a>`
  })
  // The script opens an option only if the options are those of the text in the field.
  return options.length > 0
    ? html`<div id="go-options" role="listbox" aria-label="Results" data-text="${text}">
        ${options}</div>`
    : html`<p id="go-options" role="status" data-text="${text}">Nothing found</p>`
}

/** What pages offer to the user, with each word of the text in its name or other words. */
function findOffers({ offers }: CurrentUser, text: string): Option[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
  const inPlace = (wantedPlace: Offer['place']) =>
    offers.flatMap(({ place, section, label, href, words = '' }) => {
      const about = section ? SECTIONS[section] : ''
      const all = `${label} ${about} ${words}`.toLowerCase()
      const isFound = place === wantedPlace && wanted.every((word) => all.includes(word))
      return isFound ? [{ label, href, about }] : []
    })
  return [...inPlace('navigation'), ...inPlace(undefined)]
}

async function findLinks({ deps, user, request }: PageContext, text: string): Promise<Option[]> {
  const { id: accountId } = user.account
  const search = pastedSearch(deps, accountId, text)
  const query = { accountId, ...search, inProperties: true, limit: LINKS_MAX, offset: 0 }
  const { links } = await deps.pages.findPage(query, request.signal).catch((error: unknown) => {
    // The pages are found without the links.
    if (error instanceof AppError && error.code === 'search_timeout') return { links: [] }
    throw error
  })
  return withDetails(deps, links).map((link) => {
    const address = addressText(deps.addresses.display(link))
    const { title } = link.properties
    return { label: title ?? address, href: linkPath(link.code), about: title ? address : '' }
  })
}
