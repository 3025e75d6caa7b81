import { expect, test } from 'bun:test'
import type { Code } from '../lib/code.ts'
import { packLinks, packReceipt, unpackLinks, unpackReceipt } from './parcel.ts'
import type { CreateLinks } from './row.ts'
import { urlKey } from './url.ts'

const order = (...urls: string[]): CreateLinks => ({
  accountId: 7,
  keyId: 9,
  createdAt: 1_750_000_000_000,
  items: urls.map((url, at) => ({
    url,
    urlKey: urlKey(url),
    code: `CODE${at}XYZ` as Code,
    passcodeHash: new Uint8Array(32).fill(at + 1),
  })),
})

const URLS = [
  'https://example.com/a',
  'https://пример.рф/я?q=1#💡',
  `http://b.example/?${'x'.repeat(8000)}`,
]

test.each([[URLS.slice(0, 1)], [URLS]])('links arrive as they were sent', (urls) => {
  const sent = order(...urls)
  expect(unpackLinks(structuredClone(packLinks(sent)))).toEqual(sent)
})

test('a receipt gives every link its id, and names those that are not as they were ordered', () => {
  const ordered = order(...URLS)
  const [first, second, third] = ordered.items
  const { accountId, createdAt } = ordered
  const links = [
    {
      id: 11,
      code: first?.code as Code,
      accountId,
      url: URLS[0] as string,
      createdAt,
      reused: false,
    },
    { id: 3, code: 'EARLIER1' as Code, accountId, url: 'http://n/', createdAt: 5, reused: true },
    {
      id: 12,
      code: 'REDRAWN2' as Code,
      accountId,
      url: URLS[2] as string,
      createdAt,
      reused: false,
    },
  ]
  const receipt = structuredClone(packReceipt(ordered, links))
  expect(receipt.others.map(({ at }) => at)).toEqual([1, 2])
  expect(unpackReceipt(ordered, receipt)).toEqual(links)
  expect(second?.code).not.toBe(third?.code as Code)
})

test('hashes of another length are not packed', () => {
  const { items, ...rest } = order('https://example.com/')
  const short = items.map((item) => ({ ...item, passcodeHash: new Uint8Array(31) }))
  expect(() => packLinks({ ...rest, items: short })).toThrow('one length')
})
