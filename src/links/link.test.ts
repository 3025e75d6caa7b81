import { expect, test } from 'bun:test'
import type { Code } from '../lib/code.ts'
import { type CreateLinks, decodeCreate, encodeCreate } from './link.ts'
import { urlKey } from './url.ts'

const command = (...urls: string[]): CreateLinks => ({
  author: { accountId: 7, by: { keyId: 9 }, now: 1_750_000_000_000 },
  items: urls.map((url, at) => ({
    url,
    urlKey: urlKey(new URL(url)),
    code: `CODE${at}XYZ` as Code,
    passcodeHash: new Uint8Array(32).fill(at + 1),
  })),
  quota: { linksMax: 5, urlBytesMax: 0 },
})

const URLS = [
  'https://example.com/a',
  'https://пример.рф/я?q=1#💡"\\',
  `http://b.example/?${'x'.repeat(8000)}`,
]

test.each([[URLS.slice(0, 1)], [URLS]])('links arrive as they were sent', (urls) => {
  const sent = command(...urls)
  expect(decodeCreate(structuredClone(encodeCreate(sent)))).toEqual(sent)
})

test('hashes of another length are not sent', () => {
  const { items, ...rest } = command('https://example.com/')
  const short = items.map((item) => ({ ...item, passcodeHash: new Uint8Array(31) }))
  expect(() => encodeCreate({ ...rest, items: short })).toThrow('one length')
})
