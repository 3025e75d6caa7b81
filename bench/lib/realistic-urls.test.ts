import { expect, test } from 'bun:test'
import { Url } from '../../src/links/url.ts'
import { bulkMark, bulkTargets } from './bulk-load.ts'
import { realisticUrl, seededRandom } from './realistic-urls.ts'

test('addresses are valid, all different, and the same again for a seed', () => {
  const make = () => {
    const random = seededRandom(7)
    return Array.from({ length: 20_000 }, (_, n) => realisticUrl(random, n))
  }
  const urls = make()
  expect(urls.filter((url) => !Url.safeParse(url).success)).toEqual([])
  expect(new Set(urls).size).toBe(urls.length)
  expect(make()).toEqual(urls)
})

test('bulks of two series have no URL in common, and a mark is of one URL', () => {
  const urlsOf = (series: number) =>
    bulkTargets('key', series, 3).flatMap(({ body = '' }) => JSON.parse(body).urls as string[])
  const urls = [...urlsOf(1), ...urlsOf(11)]
  expect(new Set(urls).size).toBe(6000)
  expect(urls.filter((url) => url.includes(bulkMark(1, 200)))).toHaveLength(1)
})
