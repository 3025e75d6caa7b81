import { attributes, type Html, html } from '../../lib/html.ts'
import { copyButton, shownOnce } from './components.ts'
import { shownUrl } from './shown-url.ts'

/** What the pages of links show of one. */

/**
 * A destination as a link that gives nothing away; its host stands out. One that is too long to be
 * shown leads to `page` instead, where the whole of it is.
 */
export function destination(url: string, page?: string): Html {
  const { start, host, rest, isWhole } = shownUrl(url)
  const shown = html`${start}<b>${host}</b>${rest}`
  if (!isWhole && page === undefined) return html`<span class="destination">${shown}</span>`
  const all = isWhole
    ? { href: start + host + rest, rel: 'noreferrer noopener' }
    : { href: page, title: 'The page of the link has the whole URL' }
  return html`<a ${attributes({ class: 'destination', ...all })}>${shown}</a>`
}

export const noDestination = (): Html => html`<span class="quiet">No destination yet</span>`

/** A short URL without its scheme; the button copies all of it. `href` absent: plain text. */
export function shortUrl(url: string, { id, href }: { id: string; href?: string }): Html {
  const shown = html`<data class="code" ${attributes({ id, value: url })}>${bare(url)}</data>`
  const link = href === undefined ? shown : html`<a href="${href}">${shown}</a>`
  return html`<span class="short">${link}${copyButton(id, `short URL ${bare(url)}`)}</span>`
}

const bare = (url: string) => url.replace(/^https?:\/\//, '')

/** A field that is only to be copied from. */
export const copyField = (label: string, value: string, id: string): Html => html`
  <div class="field">
    <label for="${id}">${label}</label>
    <div class="copy">
      <input class="code" readonly ${attributes({ id, value })} autocomplete="off">
      ${copyButton(id, label)}
    </div>
  </div>`

/** A passcode in the one answer that shows it. */
export const passcodeOnce = (passcode: string): Html => html`
  ${shownOnce('Passcode', passcode)}
  <p class="hint">Programs need it to change or delete this code through the API. Here in the
  dashboard your account is enough. It cannot be shown again or replaced.</p>`

export const linkPath = (code: string): string => `/app/links/${code}`

/** A picture of the code on a light ground, whatever the page’s colors. */
export const qrPicture = (code: string, { size, query = '' }: { size: number; query?: string }) => {
  const src = `${linkPath(code)}/qr.svg${query}`
  const all = { class: 'qr', src, width: size, height: size, alt: `QR code of ${code}` }
  return html`<img ${attributes(all)}>`
}

/** A place that htmx swaps for what a form answers, `#main` and with it everything. */
export const swapsMain = (path: string) => ({
  ...{ 'hx-post': path, 'hx-target': '#main', 'hx-select': '#main' },
  // A second click must not hide the passcode that the first one brings.
  ...{ 'hx-swap': 'outerHTML show:top', 'hx-sync': 'this:drop' },
})

export const count = (n: number): string => n.toLocaleString('en')
