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
  return { memory, recorder: new VisitRecorder(memory, HEADERS), reader: new VisitReader(memory) }
}

test('a visit is read as it was recorded', () => {
  const { recorder, reader } = ring()
  const head = 'GET /ABCDEF?a=\xff HTTP/1.1\r\nHost: x\r\n\r\n'
  recorder.record(4_294_967_295, client, request(head))
  expect(reader.next()).toEqual({ linkId: 4_294_967_295, weight: 1, client, head })
  expect(reader.next()).toBeUndefined()
})

test('nothing of a visit stays in memory after it was read', () => {
  const { memory, recorder, reader } = ring()
  const slots = Buffer.from(memory).subarray(128)
  recorder.record(4_294_967_295, client, request('GET /ABCDEF HTTP/1.1\r\nHost: x\r\n\r\n'))
  expect(slots.every((byte) => byte === 0)).toBe(false)
  reader.next()
  expect(slots.every((byte) => byte === 0)).toBe(true)
})

test('of a long head, and of a request without one, only the wanted headers are kept', () => {
  const { recorder, reader } = ring()
  const headers = { 'user-agent': 'A'.repeat(500), referer: 'https://a.example/', cookie: 'secret' }
  const long = `GET /ABCDEF HTTP/1.1\r\nCookie: ${'c'.repeat(4000)}\r\n\r\n`
  for (const head of [long, undefined]) recorder.record(1, client, request(head, headers, 'ref=a'))
  for (let i = 0; i < 2; i++) {
    const head = reader.next()?.head ?? ''
    expect(head).toStartWith('GET /?ref=a HTTP/1.1\r\nuser-agent: AAA')
    expect(head).toContain('\r\nreferer: https://a.example/\r\n')
    expect(head).not.toContain('secret')
  }
})

test('hits that find the ring full are counted as skipped, and older ones stay', () => {
  const { recorder, reader } = ring()
  for (let id = 1; id <= RING_SLOTS + 5; id++) recorder.record(id, client, request('GET / '))
  expect(reader.skipped).toBe(5)
  expect(reader.fill).toBe(1)
  for (let id = 1; id <= RING_SLOTS; id++) expect(reader.next()?.linkId).toBe(id)
  recorder.record(7, client, request('GET / '))
  expect(reader.next()?.linkId).toBe(7)
})

test('of many hits one in 2^shift is kept with its weight, without a pattern', () => {
  const { recorder, reader } = ring()
  reader.shift = 3
  const sums = [0, 0]
  let kept = 0
  for (let i = 0; i < 80_000; i++) {
    // Each second hit is of link 1: systematic sampling would see only one of both.
    recorder.record(i % 2, client, request('GET / '))
    for (let visit = reader.next(); visit; visit = reader.next()) {
      sums[visit.linkId] = (sums[visit.linkId] ?? 0) + visit.weight
      kept++
    }
  }
  expect(kept).toBeWithin(9000, 11_000)
  for (const sum of sums) expect(sum).toBeWithin(37_000, 43_000)
})
