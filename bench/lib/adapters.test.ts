import { expect, test } from 'bun:test'
import { ADAPTERS, type CreatedLink } from './adapters.ts'
import type { ApiAnswer, ApiCall } from './deployment.ts'

/** The requests and responses of other services, as their sources have them. */

const URL = 'https://example.com/a?b=c'
const LINK = { path: '/abc', id: 'abc' }
const answer = (body: object): ApiAnswer => ({
  status: 200,
  headers: new Headers(),
  text: JSON.stringify(body),
})
const yourls = (action: string, more: string): ApiCall => ({
  path: `/yourls-api.php?action=${action}&${more}&signature=K&format=json`,
})

interface Case {
  service: string
  create: ApiCall
  created: object
  link?: CreatedLink
  count: ApiCall
  counted: object
  remove: ApiCall
}

const CASES: Case[] = [
  {
    service: 'shlink',
    create: {
      method: 'POST',
      path: '/rest/v3/short-urls',
      body: { longUrl: URL, tags: ['bench-1'] },
    },
    created: { shortCode: 'abc', shortUrl: 'https://s.test/abc', longUrl: URL },
    count: { path: '/rest/v3/short-urls/abc' },
    counted: { shortCode: 'abc', visitsSummary: { total: 7, nonBots: 5, bots: 2 } },
    remove: { method: 'DELETE', path: '/rest/v3/short-urls/abc' },
  },
  {
    service: 'kutt',
    create: {
      method: 'POST',
      path: '/api/v2/links',
      body: { target: URL, description: 'bench-1' },
    },
    created: { id: 'a-uuid', address: 'abc', target: URL, visit_count: 0 },
    link: { path: '/abc', id: 'a-uuid' },
    count: { path: '/api/v2/links/a-uuid/stats' },
    counted: { id: 'a-uuid', visit_count: 7 },
    remove: { method: 'DELETE', path: '/api/v2/links/a-uuid' },
  },
  {
    service: 'yourls',
    create: yourls('shorturl', 'url=https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc&title=bench-1'),
    created: { status: 'success', url: { keyword: 'abc', url: URL }, statusCode: 200 },
    count: yourls('url-stats', 'shorturl=abc'),
    counted: { statusCode: 200, link: { shorturl: 'http://sho.rt/abc', clicks: '7' } },
    remove: yourls('delete', 'shorturl=abc'),
  },
  {
    service: 'chhoto',
    create: { method: 'POST', path: '/api/new', body: { shortlink: '', longlink: URL } },
    created: { success: true, error: false, shorturl: 'http://localhost:4567/abc' },
    count: { method: 'POST', path: '/api/expand', body: 'abc' },
    counted: { success: true, error: false, longurl: URL, hits: 7 },
    remove: { method: 'DELETE', path: '/api/del/abc' },
  },
]

test.each(CASES)('$service: a link is created, counted and removed', (it) => {
  const adapter = ADAPTERS[it.service]
  const link = it.link ?? LINK
  expect(adapter?.create(URL, 'bench-1', 'K')).toEqual(it.create)
  expect(adapter?.created(answer(it.created))).toEqual(link)
  expect(adapter?.count(link, 'K')).toEqual(it.count)
  expect(adapter?.counted(answer(it.counted))).toBe(7)
  expect(adapter?.remove(link, 'K')).toEqual(it.remove)
})
