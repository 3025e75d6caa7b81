import { expect, test } from 'bun:test'
import { canonicalHost } from './match.ts'
import { OwnAddress } from './own-address.ts'

const PORT = 3000

function judge(host: string, url: string, machine = ['192.0.2.80', '[2001:db8::80]']): boolean {
  const own = new OwnAddress({ host, ports: () => [PORT], machine: () => machine })
  const parsed = new URL(url)
  return own.isOwn(canonicalHost(parsed.hostname), parsed)
}

const LOOPBACK = `http://127.0.0.1:3000/ABCDEF http://127.1:3000/ http://2130706433:3000/
  http://127.9.9.9:3000/ http://localhost:3000/ https://x.localhost:3000/ http://LOCALHOST.:3000/
  http://[::1]:3000/ http://[::ffff:127.0.0.1]:3000/ http://0:3000/ http://0.0.0.0:3000/
  http://[::]:3000/ https://127.0.0.1:3000/ http://[2002:7f00:1::1]:3000/`.split(/\s+/)
const MACHINE = ['http://192.0.2.80:3000/', 'http://[2001:db8::80]:3000/', 'http://0xc0000250:3000']
const OTHERS = `http://127.0.0.1/ http://127.0.0.1:3001/ http://192.0.2.81:3000/
  http://example.com:3000/ http://localhost.example:3000/
  http://[2001:db8::81]:3000/`.split(/\s+/)

test.each([
  { hosts: ['0.0.0.0', '::'], own: [...LOOPBACK, ...MACHINE], others: OTHERS },
  { hosts: ['127.0.0.1', '::1', 'localhost'], own: LOOPBACK, others: [...MACHINE, ...OTHERS] },
])('listening on $hosts, only its addresses with its port are this service', (row) => {
  for (const host of row.hosts) {
    expect(row.own.filter((url) => !judge(host, url))).toEqual([])
    expect(row.others.filter((url) => judge(host, url))).toEqual([])
  }
})

test('listening on one address, only that one is this service', () => {
  expect(judge('192.0.2.80', 'http://192.0.2.80:3000/')).toBe(true)
  expect(judge('2001:db8::80', 'http://[2001:DB8:0::80]:3000/')).toBe(true)
  expect(judge('192.0.2.80', 'http://127.0.0.1:3000/')).toBe(false)
})

test('a port that the scheme implies counts', () => {
  const own = new OwnAddress({ host: '0.0.0.0', ports: () => [80], machine: () => [] })
  expect(own.isOwn('127.0.0.1', new URL('http://127.0.0.1/'))).toBe(true)
  expect(own.isOwn('127.0.0.1', new URL('https://127.0.0.1/'))).toBe(false)
})

test('an address that the machine gets later counts within seconds', () => {
  let now = 0
  let machine: string[] = []
  const own = new OwnAddress({
    host: '0.0.0.0',
    ports: () => [PORT],
    machine: () => machine,
    monotonic: () => now,
  })
  const url = new URL('http://192.0.2.80:3000/')
  expect(own.isOwn('192.0.2.80', url)).toBe(false)
  machine = ['192.0.2.80']
  now += 10_000
  expect(own.isOwn('192.0.2.80', url)).toBe(true)
})

test('before the service listens, and with the machine’s real addresses, nothing fails', () => {
  const silent = new OwnAddress({ host: '0.0.0.0', ports: () => [undefined] })
  const url = new URL('http://127.0.0.1:3000/')
  expect(silent.isOwn('127.0.0.1', url)).toBe(false)
  expect(new OwnAddress({ host: '0.0.0.0', ports: () => [PORT] }).isOwn('127.0.0.1', url)).toBe(
    true,
  )
})
