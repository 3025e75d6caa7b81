import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { setUpOwner } from '../support/dashboard.ts'

const LINKS = '/app/links'

test('sorted by hits, a list that ends at a rank says how many links match', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  for (let from = 0; from < 10_002; from += 3334) {
    const urls = Array.from({ length: 3334 }, (_, n) => `https://example.com/${from + n}`)
    const { status } = await app.call('POST', '/api/bulk-shorten', { key, json: { urls } })
    expect(status).toBe(201)
  }
  await app.shorten('https://other.example/', key)
  const found = async (query: string) =>
    /id="found"[^>]*>([^<]*)/.exec((await owner.get(`${LINKS}?${query}`)).text)?.[1]
  expect(await found('')).toBe('10,003 links')
  expect(await found('sort=hits')).toBe('Top 10,000 of 10,003 links')
  expect(await found('sort=hits&q=example.com')).toBe('Top 10,000 of 10,002 matching links')
  expect(await found('q=example.com')).toBe('10,002 of 10,003 links')
  expect(await found('sort=hits&q=other')).toBe('1 of 10,003 links')
  const last = await owner.get(`${LINKS}?sort=hits&page=999`)
  expect(last.text).toContain('Page 200 of 200')
})
