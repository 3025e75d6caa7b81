import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { covers, HostSetBuilder, hostOf, type PackedHosts } from './match.ts'

const pack = (hosts: Iterable<string>, seed = 1n): PackedHosts => {
  const builder = new HostSetBuilder(seed)
  for (const host of hosts) builder.add(host)
  return builder.pack()
}

test('what is no URL has no host', () => {
  for (const url of ['', 'bad.example', 'http://', 'http://bad example/', 'http://1.2.3.256/']) {
    expect(() => hostOf(url)).toThrow(TypeError)
  }
})

test('a set answers as a set of strings does, for any hosts and any seed', () => {
  const label = fc.stringMatching(/^[ab]{1,3}$/)
  const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
  fc.assert(
    fc.property(
      fc.array(host, { maxLength: 200 }),
      host,
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      (hosts, asked, seed) => {
        const suffixes = asked.split('.').map((_, i, labels) => labels.slice(i).join('.'))
        const expected = suffixes.some((suffix) => hosts.includes(suffix))
        const packed = pack(hosts, seed)
        expect(covers(packed, asked)).toBe(expected)
        expect(packed.size).toBe(new Set(hosts).size)
      },
    ),
  )
})

test('a million hosts are all found, each once, and none besides', () => {
  const host = (i: number) => `${(i * 2_654_435_761) % 4_294_967_296}-${i}.example`
  const builder = new HostSetBuilder(7n)
  for (let i = 0; i < 1_000_000; i++) builder.add(host(i))
  for (let i = 0; i < 1000; i++) builder.add(host(i))
  const packed = builder.pack()
  expect(packed.slots.byteLength).toBeLessThan(30_000_000)
  expect(packed.size).toBe(1_000_000)
  let found = 0
  for (let i = 0; i < 1_000_000; i++) if (covers(packed, `www.${host(i)}`)) found++
  let wrong = 0
  for (let i = 1_000_000; i < 1_500_000; i++) if (covers(packed, host(i))) wrong++
  expect({ found, wrong }).toEqual({ found: 1_000_000, wrong: 0 })
})

test('an empty set covers nothing', () => {
  expect(covers(pack([]), 'bad.example')).toBe(false)
})

test('a host longer than DNS allows is judged by its end', () => {
  const long = `${'a.'.repeat(4000)}bad.example`
  expect(covers(pack(['bad.example']), long)).toBe(true)
  expect(covers(pack(['worse.example']), long)).toBe(false)
})

test('a host of 253 characters can be listed, a longer one cannot', () => {
  const longest = `${'a.'.repeat(121)}bad.example`
  expect(longest).toHaveLength(253)
  const set = pack([longest])
  expect(covers(set, longest)).toBe(true)
  expect(covers(set, `b.${longest}`)).toBe(true)
  expect(covers(set, `b${longest}`)).toBe(false)
  expect(() => pack([`b${longest}`])).toThrow(RangeError)
  expect(() => pack([''])).toThrow(RangeError)
})
