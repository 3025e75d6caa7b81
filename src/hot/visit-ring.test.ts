import { expect, test } from 'bun:test'
import { allocateVisitRing, RING_SLOTS, VisitReader, VisitRecorder } from './visit-ring.ts'

const HEADERS = ['user-agent', 'referer']
const client = { keyHigh: 0xffff0001, keyLow: 0xc0000201, isForwarded: true }

function request(head: string | undefined, headers: Record<string, string> = {}, query = '') {
  return {
    query,
    ...(head !== undefined && { head }),
    get: (name: string) => headers[name] ?? null,
  }
}

function ring() {
  const memory = allocateVisitRing()
  return {
    memory,
    recorder: new VisitRecorder(memory, HEADERS),
    reader: new VisitReader(memory, HEADERS),
  }
}

test('a visit is read as it was recorded, with the wanted headers', () => {
  const { recorder, reader } = ring()
  const lines = ['Host: x', 'USER-AGENT:\t \xe9 b ', 'Cookie: secret', 'Referer: y', 'referer: z']
  const head = `GET /ABCDEF?a=\xff&b=? HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
  recorder.record(4_294_967_295, client, request(head))
  expect(reader.drain()).toEqual([
    {
      linkId: 4_294_967_295,
      weight: 1,
      client,
      query: 'a=\xff&b=?',
      headers: new Map([
        ['user-agent', '\xe9 b'],
        ['referer', 'y'],
      ]),
    },
  ])
  expect(reader.drain()).toEqual([])
})

test('the headers of a visit are its own, also when its head is incomplete', () => {
  const { recorder, reader } = ring()
  const heads = ['GET /A', 'GET /B HTTP/1.1\r\nUser-Agent: b', 'GET /?c HTTP/1.1\r\nReferer: c\r\n']
  for (const head of heads) recorder.record(1, client, request(head))
  expect(reader.drain().map(({ query, headers }) => [query, ...headers])).toEqual([
    [''],
    ['', ['user-agent', 'b']],
    ['c', ['referer', 'c']],
  ])
})

test('nothing of a visit stays in memory after it was read', () => {
  const { memory, recorder, reader } = ring()
  const slots = Buffer.from(memory).subarray(128)
  recorder.record(4_294_967_295, client, request('GET /ABCDEF HTTP/1.1\r\nHost: x\r\n\r\n'))
  expect(slots.every((byte) => byte === 0)).toBe(false)
  reader.drain()
  expect(slots.every((byte) => byte === 0)).toBe(true)
})

test('of a long head, and of a request without one, only the wanted headers are kept', () => {
  const { memory, recorder, reader } = ring()
  const headers = { 'user-agent': 'A'.repeat(500), referer: 'https://a.example/', cookie: 'secret' }
  const long = `GET /ABCDEF HTTP/1.1\r\nCookie: ${'c'.repeat(4000)}\r\n\r\n`
  for (const head of [long, undefined]) recorder.record(1, client, request(head, headers, 'ref=a'))
  expect(Buffer.from(memory).includes('secret')).toBe(false)
  const kept = {
    query: 'ref=a',
    headers: new Map([
      ['user-agent', 'A'.repeat(220)],
      ['referer', 'https://a.example/'],
    ]),
  }
  expect(reader.drain()).toMatchObject([kept, kept])
})

test('hits that find the ring full are counted as skipped, and older ones stay', () => {
  const { recorder, reader } = ring()
  for (let id = 1; id <= RING_SLOTS + 5; id++) recorder.record(id, client, request('GET / '))
  expect(reader.skipped).toBe(5)
  const ids = Array.from({ length: RING_SLOTS }, (_, n) => n + 1)
  expect(reader.drain().map(({ linkId }) => linkId)).toEqual(ids)
  recorder.record(7, client, request('GET / '))
  expect(reader.drain().map(({ linkId }) => linkId)).toEqual([7])
})

test('of many hits one in 2^shift is kept with its weight, without a pattern', () => {
  const { recorder, reader } = ring()
  reader.shift = 3
  const sums = [0, 0]
  let kept = 0
  for (let i = 0; i < 80_000; i++) {
    // Each second hit is of link 1: systematic sampling would see only one of both.
    recorder.record(i % 2, client, request('GET / '))
    if (i % 1000 < 999) continue
    for (const { linkId, weight } of reader.drain()) {
      sums[linkId] = (sums[linkId] ?? 0) + weight
      kept++
    }
  }
  expect(kept).toBeWithin(9000, 11_000)
  for (const sum of sums) expect(sum).toBeWithin(37_000, 43_000)
})
