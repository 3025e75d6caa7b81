import { expect, test } from 'bun:test'
import { isNavigation, VisitorPages } from './visitor-page.ts'

const PLAIN = { name: undefined, logo: undefined, font: '/app/assets/inter.0.woff2' }
const pages = new VisitorPages(PLAIN)

const CHROME =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

const requests = [
  { name: 'Chrome opens a link', headers: { 'sec-fetch-dest': 'document' }, page: true },
  { name: 'an old browser opens a link', headers: { accept: CHROME }, page: true },
  { name: 'curl', headers: { accept: '*/*' }, page: false },
  { name: 'no header at all', headers: {}, page: false },
  {
    name: 'a script of a page',
    headers: { 'sec-fetch-dest': 'empty', accept: CHROME },
    page: false,
  },
  { name: 'an image', headers: { 'sec-fetch-dest': 'image' }, page: false },
  { name: 'a frame', headers: { 'sec-fetch-dest': 'iframe', accept: CHROME }, page: false },
  { name: 'JSON first', headers: { accept: 'application/json, text/html;q=0.9' }, page: false },
  { name: 'JSON and HTML alike', headers: { accept: 'application/json,text/html' }, page: false },
  { name: 'HTML first', headers: { accept: 'TEXT/HTML, application/json;q=0.5' }, page: true },
  { name: 'HTML refused', headers: { accept: 'text/html;q=0' }, page: false },
  { name: 'a broken weight', headers: { accept: 'text/html;q=high' }, page: false },
] as const
test.each(requests)('$name: a page is $page', ({ headers, page }) => {
  expect(isNavigation(new Headers(headers))).toBe(page)
})

const languages = [
  ['', 'en', 'This link does not exist'],
  ['de-CH, fr;q=0.5', 'de', 'Diesen Link gibt es nicht'],
  ['nl, fr;q=0.7, de;q=0.3', 'fr', 'Ce lien n’existe pas'],
  ['es-419', 'es', 'Este enlace no existe'],
  ['ja', 'ja', 'このリンクは存在しません'],
  ['zh-Hant-TW', 'zh', '此链接不存在'],
  ['de;q=0, en;q=0.1', 'en', 'This link does not exist'],
  ['constructor, __proto__', 'en', 'This link does not exist'],
] as const
test.each(languages)('a visitor who accepts %j reads %s', (accepted, language, title) => {
  const page = pages.refusal('code_not_found', new Headers({ 'accept-language': accepted }))
  expect(page.status).toBe(404)
  const text = page.body
  expect(text).toContain(`<html lang="${language}">`)
  expect(text).toContain(`<h1>${title}</h1>`)
})

test.each([
  ['link_disabled', 410],
  ['rate_limited', 429],
] as const)('%s has the status %i', (problem, status) => {
  expect(pages.refusal(problem, new Headers()).status).toBe(status)
})

test('the page loads only the typeface, runs no script and names no product', () => {
  const page = pages.refusal('code_not_found', new Headers())
  const text = page.body
  expect(text).not.toMatch(/<script|src=|href=|hopcode/i)
  expect(text.match(/url\([^)]*\)/g)).toEqual(['url(/app/assets/inter.0.woff2)'])
  const style = /<style>(.*)<\/style>/.exec(text)?.[1] ?? ''
  const hash = new Bun.CryptoHasher('sha256').update(style).digest('base64')
  const policy = page.headers['Content-Security-Policy']
  expect(policy).toStartWith(`default-src 'none'; style-src 'sha256-${hash}'`)
})

test('headers of a mebibyte take no longer than short ones', () => {
  const entries = 'de;q=0.1,'.repeat(100_000)
  const headers = new Headers({ accept: entries, 'accept-language': entries })
  expect(isNavigation(headers)).toBe(false)
  expect(pages.refusal('code_not_found', headers).status).toBe(404)
})

test('a link that is off for now, not yet on, or removed says so, with the status of an unknown one', () => {
  const headers = new Headers({ 'accept-language': 'de' })
  const titles = (['link_paused', 'link_not_started', 'link_removed'] as const).map((reason) => {
    const { status, body } = pages.refusal('code_not_found', headers, reason)
    return [status, /<h1>([^<]*)/.exec(body)?.[1]]
  })
  expect(titles).toEqual([
    [404, 'Dieser Link ist pausiert'],
    [404, 'Dieser Link ist noch nicht aktiv'],
    [404, 'Dieser Link wurde entfernt'],
  ])
})

test('the name of the operator is text, and the logo an image of this service', () => {
  const named = new VisitorPages({ ...PLAIN, name: '<b>Acme & Co</b>', logo: '/-/logo' })
  const { body, headers } = named.refusal('code_not_found', new Headers())
  expect(body).toContain('<img src="/-/logo" alt="">&lt;b&gt;Acme &amp; Co&lt;/b&gt;</header>')
  expect(headers['Content-Security-Policy']).toContain("img-src 'self'")
})
