import { expect, test } from 'bun:test'
import { allocateVisitRing, RING_SLOTS, VisitRecorder } from '../hot/visit-ring.ts'
import { type CollectorState, VisitCollector } from './collector.ts'
import { decodeSums } from './parts.ts'
import type { VisitBatch } from './store.ts'
import { visitKey } from './values.ts'

const DAY_MS = 24 * 3600 * 1000
const START = 20_000 * DAY_MS + DAY_MS / 2
const client = { keyHigh: 0xffff0001, keyLow: 1, isForwarded: false }
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'

/** A collector without its timer: each read is one pass. */
function collector(rings = 1) {
  const memories = Array.from({ length: rings }, allocateVisitRing)
  const time = new SharedArrayBuffer(16)
  const times = new Float64Array(time)
  times[0] = START
  const settings = { countryFile: undefined, countryHeader: undefined, time }
  const it = new VisitCollector({ ...settings, rings: memories })
  it.close()
  const recorders = memories.map((memory) => new VisitRecorder(memory, []))
  return {
    record(linkId: number, lines = '', ring = 0) {
      const head = `GET /ABCDEF HTTP/1.1\r\nUser-Agent: ${FIREFOX}\r\n${lines}\r\n`
      recorders[ring]?.record(linkId, client, { query: '', head, get: () => null })
    },
    nextDay() {
      times[0] = (times[0] as number) + DAY_MS
    },
    take: (): { batches: VisitBatch[]; state: CollectorState } =>
      it.functions.takeVisits({ isDue: true }),
  }
}

const linksOf = (batches: readonly VisitBatch[]) =>
  batches.flatMap(({ links }) => links.map(([id, parts]) => [id, decodeSums(parts)] as const))
const referrer = (value: string) => visitKey('referrer', value)

test('visits of all rings are added up by link, and taken once', () => {
  const it = collector(2)
  it.record(5)
  it.record(5, '', 1)
  it.record(3, 'Referer: https://a.example/\r\n', 1)
  const { batches, state } = it.take()
  expect(batches.map(({ day }) => day)).toEqual([20_000])
  const links = linksOf(batches)
  expect(links.map(([id, { known, observed }]) => [id, known, observed])).toEqual([
    [3, 1, 1],
    [5, 2, 2],
  ])
  expect(links[0]?.[1].counts.get(referrer('a.example'))).toBe(1)
  expect(links[1]?.[1].counts.get(referrer('direct'))).toBe(2)
  expect(state).toMatchObject({ recorded: 3, observed: 3, skipped: 0, declined: 0 })
  expect(it.take().batches).toEqual([])
})

test('visits belong to the UTC day on which they are read', () => {
  const it = collector()
  it.record(1)
  it.take()
  it.record(1)
  it.nextDay()
  it.record(1)
  const { batches } = it.take()
  expect(batches.map(({ day }) => day)).toEqual([20_001])
  expect(linksOf(batches)[0]?.[1].known).toBe(2)
})

test('the visits in a full ring stand for those that found it full', () => {
  const it = collector()
  for (let i = 0; i < 3 * RING_SLOTS; i++) it.record(1)
  const { batches, state } = it.take()
  const [, sums] = linksOf(batches)[0] ?? []
  expect(sums).toMatchObject({ known: 3 * RING_SLOTS, observed: RING_SLOTS })
  expect(sums?.counts.get(referrer('direct'))).toBe(3 * RING_SLOTS)
  expect(state).toMatchObject({ recorded: 3 * RING_SLOTS, skipped: 0 })
})

test('hits that are too many for that are without details', () => {
  const it = collector()
  for (let i = 0; i < 100 * RING_SLOTS; i++) it.record(1)
  const { batches, state } = it.take()
  expect(linksOf(batches)[0]?.[1].known).toBe(64 * RING_SLOTS)
  expect(state).toMatchObject({ recorded: 64 * RING_SLOTS, skipped: 36 * RING_SLOTS })
})

test('hits that arrive together just after a pass do not look like a high load', () => {
  const it = collector()
  it.take()
  for (let i = 0; i < 200; i++) it.record(1)
  it.take()
  for (let i = 0; i < 400; i++) it.record(1)
  const { state } = it.take()
  expect(state).toMatchObject({ recorded: 600, observed: 600 })
})

test('between bursts of a high load, as few of the hits are read as in them', () => {
  const it = collector()
  for (let i = 0; i < 3 * RING_SLOTS; i++) it.record(1)
  it.take()
  const { observed } = it.take().state
  for (let i = 0; i < 1000; i++) it.record(1)
  expect(it.take().state.observed - observed).toBeWithin(60, 200)
})

test('some seconds after a high load, details are exact again', () => {
  const it = collector()
  for (let i = 0; i < 100 * RING_SLOTS; i++) it.record(1)
  for (let pass = 0; pass < 100; pass++) it.take()
  const { observed } = it.take().state
  for (let i = 0; i < 500; i++) it.record(1)
  expect(it.take().state.observed - observed).toBe(500)
})

test('one link with endless referrers takes no more than its share', () => {
  const it = collector()
  for (let i = 0; i < 1000; i++) it.record(1, `Referer: https://host-${i}.example/\r\n`)
  const [, sums] = linksOf(it.take().batches)[0] ?? []
  expect(sums?.known).toBe(1000)
  expect(sums?.counts.size).toBeLessThan(20)
  expect(sums?.counts.get(referrer('other'))).toBe(988)
})
