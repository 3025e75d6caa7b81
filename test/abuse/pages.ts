/**
 * What makes dashboard pages large and expensive: the content of links, the paths of pages, and
 * what forms send. Data only, so that tests and the abuse run can both send it.
 */

/** The longest destination that a link may have, in UTF-16 units. */
const URL_LENGTH_MAX = 8192

interface WorstUrl {
  name: string
  url: (i: number) => string
}

const filled = (start: string, letter: string) => {
  const count = Math.floor((URL_LENGTH_MAX - start.length) / letter.length)
  return start + letter.repeat(count)
}

/**
 * Destinations that grow most between the database and a page. `i` makes each one different. Where
 * an encoded URL has a limit of its own, the first ones are refused when they are made.
 */
export const WORST_URLS: readonly WorstUrl[] = [
  { name: 'Chinese letters: 1 becomes 9', url: (i) => filled(`https://x.example/${i}/`, '水') },
  { name: 'emoji: 2 units become 12', url: (i) => filled(`https://x.example/${i}/`, '🦆') },
  { name: 'ampersands: 1 becomes 5', url: (i) => filled(`https://x.example/${i}?`, '&') },
  { name: 'quotes: 1 becomes 6', url: (i) => filled(`https://x.example/${i}/`, '"') },
  { name: 'letters that do not show', url: (i) => filled(`https://x.example/${i}/`, '\u200b') },
  {
    name: 'a long user name',
    url: (i) => `${filled(`https://${i}`, 'u').slice(0, -10)}@x.example`,
  },
  { name: 'a long host', url: (i) => filled(`https://${i}.`, 'h') },
  { name: 'ASCII', url: (i) => filled(`https://x.example/${i}/`, 'a') },
  { name: '200 ampersands', url: (i) => `https://x.example/${i}?${'&'.repeat(175)}` },
]

/** Every page of a signed-in member, fragments and files included. `code`: a link of theirs. */
export function pagePaths(code: string): string[] {
  return [
    '/app/links',
    '/app/links?page=2',
    '/app/links?sort=hits',
    `/app/links?q=${'%22'.repeat(200)}`,
    '/app/links/bulk',
    '/app/go?q=a',
    `/app/links/${code}`,
    `/app/links/${code}?range=90d&size=${'%22'.repeat(2000)}`,
    `/app/links/${code}/delete`,
    '/app/analytics?range=90d',
    '/app/analytics/campaigns?range=90d',
    '/app/keys',
    '/app/account',
    '/app/account/security',
    '/app/account/delete',
  ]
}

/** Pages of the owner. */
export const OWNER_PATHS: readonly string[] = [
  '/app/service',
  '/app/service/accounts',
  `/app/service/accounts?search=${'%22'.repeat(250)}`,
  '/app/service/accounts/1',
  '/app/service/accounts/1/disable',
]

/** Files and fragments: charged like pages, and not pages themselves. */
export function filePaths(code: string): string[] {
  return [
    `/app/links/${code}/qr.png?size=2048`,
    `/app/links/${code}/qr.svg`,
    `/app/analytics/${code}`,
    '/app/links/export.csv',
  ]
}

/** Pages of the sign-in and of one-time links, for a browser without a session. */
export const AUTH_PATHS: readonly string[] = [
  '/app/sign-in',
  '/app/sign-in/code',
  '/app/sign-up',
  `/app/join/${'A'.repeat(43)}`,
  `/app/reset/${'A'.repeat(43)}`,
  `/app/setup/${'A'.repeat(43)}`,
  '/app',
  '/app/links',
]

/** Texts of a form field that come back on the page with an error. */
export const WORST_TEXTS: readonly string[] = [
  '"'.repeat(URL_LENGTH_MAX),
  '\u200b'.repeat(6000),
  '水'.repeat(6000),
  '"'.repeat(100_000),
]

/** Lines for the bulk form: all of them fail, or all become links. */
export const failingLines = (count: number, length: number): string =>
  Array.from({ length: count }, (_, i) => `${i}${'"'.repeat(length)}`).join('\n')

export const longUrls = (count: number, length: number): string =>
  Array.from({ length: count }, (_, i) => `https://x.example/${i}/${'&'.repeat(length)}`).join('\n')
