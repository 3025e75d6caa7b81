import { REFUSALS } from '../errors.ts'
import type { RequestHeaders } from '../http/context.ts'
import TEXTS from './visitor-texts.json' with { type: 'json' }

/** The page of a short link that does not redirect, for a person with a browser. */

type Page = keyof typeof TEXTS.en

/** The refusals with a page. */
export type VisitorProblem = Exclude<Page, 'preview'>

type Language = keyof typeof TEXTS

const STYLE = [
  ':root{color-scheme:light dark}',
  'body{margin:0;min-height:100vh;display:grid;place-items:center;',
  'font:17px/1.5 system-ui,sans-serif;background:#f5f7fa;color:#17202e}',
  'main{max-width:28rem;padding:2rem;text-align:center}',
  'h1{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}',
  'p{margin:0}',
  '@media(prefers-color-scheme:dark){body{background:#0e1420;color:#e8edf5}}',
].join('')

/** The headers on which a refusal depends: programs get JSON, visitors a page in their language. */
export const VARY = 'Accept, Accept-Language, Sec-Fetch-Dest'

const STYLE_HASH = new Bun.CryptoHasher('sha256').update(STYLE).digest('base64')

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html;charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
  'Cache-Control': 'no-store',
}

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

/** The page in the visitor's language. The caller adds headers such as `Retry-After`. */
export const visitorPage = (problem: VisitorProblem, headers: RequestHeaders) =>
  pageOf(problem, REFUSALS[problem].status, headers)

/** What an app shows of a link whose destination it must not fetch. */
export const previewPage = (headers: RequestHeaders) => pageOf('preview', 200, headers)

function pageOf(page: Page, status: number, headers: RequestHeaders) {
  const language = languageOf(headers.get('accept-language') ?? '')
  const { title, text } = TEXTS[language][page]
  const body = `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
<main><h1>${title}</h1><p>${text}</p></main>
</html>
`
  return { status, headers: Object.assign({}, PAGE_HEADERS), body }
}

/** In place of a page. Never cached: the code may be created later. */
export const redirectNavigation = (location: string) => ({
  status: 302,
  headers: { Location: location, 'Cache-Control': 'no-store' },
  body: '',
})

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

/** The entries of a header and their weights from 0 to 1 (RFC 9110, section 12.4.2). */
function weightsOf(header: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const entry of header.toLowerCase().split(',', ENTRIES_MAX)) {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim())
    const q = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = q === undefined ? 1 : Number(q.slice(2))
    if (name !== '' && weight >= 0 && weight <= 1) weights.set(name, weight)
  }
  return weights
}
