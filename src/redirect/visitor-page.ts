import { readableHost } from '../addresses/shown-host.ts'
import { REFUSALS } from '../errors.ts'
import type { RequestHeaders } from '../http/context.ts'
import TEXTS from './visitor-texts.json' with { type: 'json' }

/** The pages of short links that do not redirect, for a person with a browser. */

type Page = Exclude<keyof typeof TEXTS.en, 'password_form' | 'destination_details' | 'statistics'>

/** A reason that only a page tells: programs get the same as for an unknown code. */
export type OffReason = 'link_paused' | 'link_not_started' | 'link_removed'
/** The refusals with a page. */
export type VisitorProblem = Exclude<Page, 'preview' | 'destination' | OffReason | PasswordProblem>
/** The pages with the form for the password of a link. */
export type PasswordProblem = 'password_required' | 'wrong_password' | 'too_many_attempts' | 'busy'

type Language = keyof typeof TEXTS

/** What people see of a link before they follow it. */
export interface LinkPreview {
  /** As people see it. */
  shortUrl: string
  /** The path that follows the link, percent-encoded. */
  path: string
  /** Null for a link with a password. */
  url: string | null
  /** Epoch ms. */
  createdAt: number
  /** Some visitors are redirected elsewhere. */
  hasRules: boolean
}

/** What the pages show of whoever runs the service. */
export interface Brand {
  name: string | undefined
  /** Paths of an image and of the typeface, in any of which no character is special in HTML. */
  logo: string | undefined
  font: string | undefined
}

const styleOf = ({ font }: Brand): string =>
  [
    font && `@font-face{font-family:Inter;src:url(${font}) format("woff2");font-weight:100 900}`,
    ':root{color-scheme:light dark}',
    'body{margin:0;min-height:100vh;display:grid;place-items:center;',
    'font:17px/1.5 Inter,system-ui,sans-serif;background:#fafafb;color:#17191f}',
    'main{max-width:28rem;padding:2rem;text-align:center}',
    'h1{font-size:1.375rem;line-height:1.25;letter-spacing:-.01em;margin:0 0 .5rem}',
    'p{margin:0}',
    'header{margin-bottom:2rem;font-weight:600}',
    'form{margin-top:1.5rem;text-align:left}',
    'label{display:block;font-weight:600;margin-bottom:.25rem}',
    'input,button,a{box-sizing:border-box;width:100%;padding:.6rem .75rem;font:inherit;',
    'border:1px solid #767b87;border-radius:.5rem}',
    'input{background:Field;color:FieldText}',
    'button,a{margin-top:.75rem;border-color:#4f46e5;background:#4f46e5;color:#fff;',
    'font-weight:600}',
    'a{display:block;margin-top:1.5rem;text-decoration:none}',
    'p+p{margin-top:.75rem}',
    'p{overflow-wrap:anywhere}',
    'strong{font-size:1.5rem;line-height:1.25}',
    'small{font-size:.9375rem}',
    'img{display:block;max-width:12rem;max-height:4rem;margin:0 auto .5rem}',
    '@media(prefers-color-scheme:dark){body{background:#0e1014;color:#e9ebf0}',
    'button{border-color:#8c8ffb;background:#8c8ffb;color:#0d0f24}}',
  ].join('')

/** The headers on which a refusal depends: programs get JSON, visitors a page in their language. */
export const VARY = 'Accept, Accept-Language, Sec-Fetch-Dest'

/**
 * Whether a browser navigates: `Sec-Fetch-Dest: document`, or without that header an `Accept` that
 * names text/html with a higher weight than JSON.
 */
export function isNavigation(headers: RequestHeaders): boolean {
  const destination = headers.get('sec-fetch-dest')
  if (destination !== null) return destination === 'document'
  const weights = weightsOf(headers.get('accept') ?? '')
  const html = weights.get('text/html') ?? 0
  return html > 0 && html > (weights.get('application/json') ?? 0)
}

/** Creates the pages in the visitor's language. The caller adds headers such as `Retry-After`. */
export class VisitorPages {
  readonly #style: string
  readonly #header: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #formPolicy: Readonly<Record<string, string>>

  constructor(brand: Brand) {
    const { name, logo } = brand
    this.#style = styleOf(brand)
    const image = logo === undefined ? '' : `<img src="${logo}" alt="">`
    const shownName = name === undefined ? '' : Bun.escapeHTML(name)
    this.#header = image || shownName ? `<header>${image}${shownName}</header>` : ''
    const policy = (formAction: string) => ({
      'Content-Security-Policy': [
        "default-src 'none'",
        `style-src 'sha256-${hash}'`,
        "font-src 'self'",
        "img-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        `form-action ${formAction}`,
      ].join('; '),
    })
    const hash = new Bun.CryptoHasher('sha256').update(this.#style).digest('base64')
    this.#headers = {
      'Content-Type': 'text/html;charset=utf-8',
      ...policy("'none'"),
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Robots-Tag': 'noindex',
      'Cache-Control': 'no-store',
    }
    // Chromium applies it to the redirect after the form too.
    this.#formPolicy = policy('https: http:')
  }

  /** `reason`: why a link is off whose refusal is that of an unknown code. */
  refusal(problem: VisitorProblem, headers: RequestHeaders, reason?: OffReason) {
    return this.#page(reason ?? problem, REFUSALS[problem].status, headers)
  }

  /** What an app shows of a link whose destination it must not fetch. */
  preview(headers: RequestHeaders) {
    return this.#page('preview', 200, headers)
  }

  /**
   * The form for the password of a link, which posts to the address that was opened. It asks with
   * 200, so that every browser and app shows it. `seconds`: until the next attempt.
   */
  passwordForm(problem: PasswordProblem, headers: RequestHeaders, seconds: string) {
    const isFirst = problem === 'password_required'
    const language = languageOf(headers.get('accept-language') ?? '')
    const { label, button } = TEXTS[language].password_form
    const form = `<form method="post"><label for="password">${label}</label>\
<input id="password" name="password" type="password" required autofocus autocomplete="off"\
${isFirst ? '' : ' aria-describedby="text" aria-invalid="true"'}><button>${button}</button></form>`
    const status = isFirst ? 200 : REFUSALS[problem].status
    const page = this.#page(problem, status, headers, { form, seconds })
    Object.assign(page.headers, this.#formPolicy)
    return page
  }

  /** The destination of a link, with its host in large type, and a button that follows the link. */
  destination({ shortUrl, path, url, createdAt, hasRules }: LinkPreview, headers: RequestHeaders) {
    const language = languageOf(headers.get('accept-language') ?? '')
    const { destination_details: texts, password_form: form } = TEXTS[language]
    const day = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' })
    const paragraphs = [
      Bun.escapeHTML(shortUrl),
      ...(url === null ? [texts.protected] : destinationOf(url)),
      ...(hasRules ? [texts.rules] : []),
      `<small>${texts.created.replace('{day}', day.format(createdAt))}</small>`,
    ]
    const details = paragraphs.map((paragraph) => `<p>${paragraph}</p>`).join('')
    const open = `<a href="${Bun.escapeHTML(path)}" rel="nofollow">${form.button}</a>`
    return this.#page('destination', 200, headers, { form: details + open })
  }

  #page(page: Page, status: number, headers: RequestHeaders, { form = '', seconds = '' } = {}) {
    const language = languageOf(headers.get('accept-language') ?? '')
    const { title, text } = TEXTS[language][page]
    const paragraph = text.replace('{seconds}', seconds)
    const body = `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${this.#style}</style>
<main>${this.#header}<h1>${title}</h1><p id="text">${paragraph}</p>${form}</main>
</html>
`
    return { status, headers: Object.assign({}, this.#headers), body }
  }
}

/** The host, which cannot be mistaken for another one, and the whole URL. */
function destinationOf(url: string): string[] {
  const host = readableHost(URL.parse(url)?.host ?? '')
  // Signs that are not visible, or turn the direction of writing, are shown as they are encoded.
  const visible = url.replace(/\p{C}/gu, encodeURIComponent)
  return [`<strong>${Bun.escapeHTML(host)}</strong>`, Bun.escapeHTML(visible)]
}

/** Redirect that replaces a page. Never cached: the code may be created later. */
export const redirectNavigation = (location: string) => ({
  status: 302,
  headers: { Location: location, 'Cache-Control': 'no-store' },
  body: '',
})

/** The texts of the public page of a link in the visitor's language. */
export function statisticsTexts(headers: RequestHeaders): StatisticsTexts {
  const language = languageOf(headers.get('accept-language') ?? '')
  const { statistics, destination, code_not_found } = TEXTS[language]
  return { language, ...statistics, preview: destination.title, missing: code_not_found }
}

export type StatisticsTexts = typeof TEXTS.en.statistics & {
  language: string
  preview: string
  /** Of a page that does not exist. */
  missing: { title: string; text: string }
}

/** The preferred one of the languages with texts; English if none is accepted. */
function languageOf(acceptLanguage: string): Language {
  const ranked = [...weightsOf(acceptLanguage)].sort(([, a], [, b]) => b - a)
  for (const [tag, weight] of ranked) {
    const [primary = ''] = tag.split('-')
    if (weight > 0 && isLanguage(primary)) return primary
  }
  return 'en'
}

const isLanguage = (tag: string): tag is Language => Object.hasOwn(TEXTS, tag)

/** More entries than any browser sends. Further ones are ignored, to limit the time. */
const ENTRIES_MAX = 32
/** Characters that are read. An entry that is not completely in them is left out. */
const ENTRIES_LENGTH_MAX = 1024

/** The entries of a header and their weights from 0 to 1 (RFC 9110, section 12.4.2). */
export function weightsOf(header: string): Map<string, number> {
  const weights = new Map<string, number>()
  const isLong = header.length > ENTRIES_LENGTH_MAX
  const read = isLong ? header.slice(0, header.lastIndexOf(',', ENTRIES_LENGTH_MAX) + 1) : header
  for (const entry of read.toLowerCase().split(',', ENTRIES_MAX)) {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim())
    const q = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = q === undefined ? 1 : Number(q.slice(2))
    if (name !== '' && weight >= 0 && weight <= 1) weights.set(name, weight)
  }
  return weights
}
