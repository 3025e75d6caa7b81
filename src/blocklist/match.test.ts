import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { covers, HostSetBuilder, hostOf, type PackedHosts } from './match.ts'
import { parseBlocklist } from './parse.ts'

const LISTED = `bad.example deep.worse.example münchen.example faß.example 日本.example
  under_score.example 192.0.2.7 203.0.113.255 127.0.0.1 2001:db8::7 2001:db8:0:1::a:b`

const BLOCKED = {
  'as it is listed': `http://bad.example https://bad.example/ https://bad.example/path?query#part
    http://bad.example?fine.example http://bad.example#fine.example http://under_score.example/
    http://bad.example/@fine.example http://bad.example?@fine.example http://deep.worse.example/`,
  'in other letters': `HTTP://bad.example/ HtTpS://bad.example/ http://BAD.EXAMPLE/
    https://Bad.Example/ https://bAd.eXaMpLe/ http://DEEP.worse.example/
    http://UNDER_SCORE.example/`,
  'with dots at its end': `http://bad.example./ http://bad.example../ http://bad.example...:80/
    http://BAD.EXAMPLE.:8080/ http://bad.example%2e/ http://bad.example。/ http://bad.example．/`,
  'on another port': `http://bad.example:80/ http://bad.example:443/ https://bad.example:443/
    https://bad.example:8443/ http://bad.example:0/ http://bad.example:65535/ http://bad.example:/
    http://bad.example:00080/`,
  'behind userinfo': `http://user@bad.example/ http://user:word@bad.example/ http://@bad.example/
    http://fine.example@bad.example/ http://fine.example:80@bad.example/ http://:@bad.example/
    http://fine.example%2F@bad.example/ http://fine.example%00@bad.example/ http://a@b@bad.example/
    http://a:b@c:d@bad.example:99/ http://user@192.0.2.7/ http://user@[2001:db8::7]/`,
  'percent-encoded': `http://%62ad.example/ http://b%61d.example/ http://bad%2eexample/
    http://bad%2Eexample/ http://%62%61%64%2e%65%78%61%6d%70%6c%65/ http://%42%41%44.example/
    http://b%EF%BD%81d.example/ http://bad%E3%80%82example/ http://under%5Fscore.example/
    http://m%C3%BCnchen.example/ http://m%c3%bcnchen.example/ http://fa%C3%9F.example/
    http://%E6%97%A5%E6%9C%AC.example/ http://192%2e0%2E2%2e7/ http://%31%39%32.0.2.7/`,
  'in letters and dots that look or count alike': `http://ｂａｄ.example/ http://ＢＡＤ.example/
    http://ｂａｄ.ｅｘａｍｐｌｅ/ http://bad．example/ http://bad。example/ http://bad｡example/
    http://𝐛𝐚𝐝.example/ http://𝕓𝕒𝕕.example/ http://ⓑⓐⓓ.example/ http://ⒷⒶⒹ.example/
    http://ᵇᵃᵈ.example/ http://日本。example/ http://ｍünchen.example/`,
  'with characters that nobody sees': `http://bad.ex\u00adample/ http://b\u200bad.example/
    http://ba\u2060d.example/ http://ba\ufe0fd.example/ http://\u00adbad.example/`,
  'with slashes that browsers mend': `http://bad.example\\path http://bad.example\\@fine.example/
    http:\\\\bad.example/ http:/\\bad.example/ http:bad.example/ http:/bad.example/
    http:///bad.example/ http:////bad.example/`,
  'as a subdomain': `http://www.bad.example/ http://a.b.c.d.e.f.bad.example/
    http://WWW.BAD.EXAMPLE./ http://.bad.example/ http://..bad.example/ http://a..bad.example/
    http://*.bad.example/ http://_dmarc.bad.example/ http://-.bad.example/ http://1.bad.example/
    http://xn--mnchen-3ya.bad.example/ http://192.0.2.8.bad.example/ http://com.bad.example/
    http://bad.example.bad.example/ http://x.deep.worse.example/ http://www.münchen.example/`,
  'in Unicode or punycode': `http://münchen.example/ http://MÜNCHEN.example/
    http://mu\u0308nchen.example/ http://MU\u0308NCHEN.EXAMPLE/ http://xn--mnchen-3ya.example/
    http://XN--MNCHEN-3YA.EXAMPLE/ http://Xn--Mnchen-3yA.example./ http://faß.example/
    http://xn--fa-hia.example/ http://日本.example/ http://xn--wgv71a.example/`,
  'as IPv4 in another spelling': `http://192.0.2.7/ https://192.0.2.7:8443/ http://192.0.2.7./
    http://3221225991/ http://0xc0000207/ http://0XC0000207/ http://030000001007/
    http://192.0.519/ http://192.519/ http://192.0x207/ http://192.01007/ http://0xc0.0.2.7/
    http://0xc0.0x0.0x2.0x7/ http://0300.0.2.7/ http://0300.0000.0002.0007/
    http://0300.0x0.2.07/ http://0x00c0.0.2.7/ http://192.0.2.0x07/ http://００３００.0.2.7/
    http://１９２.０.２.７/ http://①⑨②.0.②.⑦/ http://192。0。2。7/ http://203.0.113.255/
    http://3405804031/ http://127.0.0.1/ http://127.1/ http://127.0.1/ http://2130706433/
    http://0x7f000001/ http://0x7f.1/ http://017700000001/ http://0177.1/`,
  'as IPv4 within IPv6': `http://[::ffff:192.0.2.7]/ http://[::FFFF:192.0.2.7]/
    http://[::ffff:c000:207]/ http://[::ffff:C000:0207]:8080/ http://[0:0:0:0:0:ffff:192.0.2.7]/
    http://[0000:0000:0000:0000:0000:ffff:c000:0207]/ http://[0:0:0:0:0:FFFF:C000:207]/
    http://[::192.0.2.7]/ http://[::c000:207]/ http://[64:ff9b::192.0.2.7]/
    http://[64:ff9b::c000:207]/ http://[0064:ff9b:0:0:0:0:c000:0207]/
    http://[::ffff:203.0.113.255]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/`,
  'as IPv4 that a gateway or a tunnel reaches by IPv6': `http://[2002:c000:207::1]/
    http://[2002:C000:0207:1:2:3:4:5]/ http://[2002:c000:207::]/ http://[2002:7f00:1::1]/
    http://[64:ff9b:1::c000:207]/ http://[64:ff9b:1:fffe::c000:207]/ http://[::ffff:0:c000:207]/
    http://[::ffff:0:192.0.2.7]/ http://[0:0:0:0:ffff:0:c000:207]/
    http://[2001:0:1:2:3:4:3fff:fdf8]/ http://[2001::3fff:fdf8]/`,
  'as IPv6 in another spelling': `http://[2001:db8::7]/ http://[2001:DB8::7]/
    http://[2001:db8:0:0:0:0:0:7]/ http://[2001:0db8:0000:0000:0000:0000:0000:0007]/
    http://[2001:db8::0:7]:443/ http://[2001:db8::0.0.0.7]/ http://[2001:db8:0:1::a:b]/
    http://[2001:db8:0:1:0:0:a:b]/ http://[2001:0DB8:0:1:0::A:B]/`,
}

const FINE = {
  'is a neighbour by name': `http://fine.example/ http://notbad.example/ http://xbad.example/
    http://ad.example/ http://d.example/ http://example/ http://example./ http://bad/ http://bad./
    http://badexample/ http://bad-example/ http://bad.examples/ http://bad.exampl/
    http://bad..example/ http://-bad.example/ http://bad_.example/ http://worse.example/
    http://deeper.worse.example/ http://xdeep.worse.example/ http://underscore.example/
    http://under-score.example/`,
  'has the listed name in front': `http://bad.example.evil.test/ http://bad.example.com/
    http://bad.example-fine.test/ http://bad.example.fine.example./ http://deep.worse.example.test/
    http://bad.example\u3002evil.test/`,
  'has the listed name elsewhere': `http://bad.example@fine.example/ http://fine.example/bad.example
    http://bad.example:80@fine.example/ http://fine.example/http://bad.example/
    http://fine.example?http://bad.example/ http://fine.example#http://bad.example/
    http://fine.example#@bad.example/ http://fine.example?@bad.example/
    http://fine.example/@bad.example http://fine.example\\@bad.example/`,
  'is another Unicode name': `http://munchen.example/ http://muenchen.example/ http://日.example/
    http://xn--mnchen-3yb.example/ http://fass.example/ http://b\u0430d.example/
    http://bad.ex\u0430mple/`,
  'is another IPv4 address': `http://192.0.2.70/ http://192.0.2.8/ http://192.0.27/ http://2.7/
    http://0.2.7/ http://7/ http://192.0.2/ http://1.192.0.2/ http://192.0.2.6/ http://3221225992/
    http://0xc0000208/ http://203.0.113.25/ http://203.0.113.254/ http://128.0.0.1/
    http://127.0.0.2/ http://255.255.255.255/ http://0.0.0.0/`,
  'is another IPv6 address': `http://[::ffff:192.0.2.8]/ http://[::fffe:192.0.2.7]/
    http://[2001:db8::192.0.2.7]/ http://[2001:db8::8]/ http://[::ffff:0:192.0.2.8]/
    http://[2002:c000:208::1]/ http://[2003:c000:207::1]/ http://[64:ff9b:1::c000:208]/
    http://[64:ff9b:2::c000:207]/ http://[64:ff9b::1:c000:207]/ http://[64:ff9a::c000:207]/
    http://[2001:0:1:2:3:4:3fff:fdf7]/ http://[2001:1:1:2:3:4:3fff:fdf8]/
    http://[1::ffff:c000:207]/ http://[::1:ffff:0:c000:207]/ http://[::1:c000:207]/
    http://[2001:db8::70]/ http://[2001:db8:7::]/ http://[2001:db8::7:0]/
    http://[2001:db8::1:7]/ http://[::7]/ http://[::]/ http://[::1]/ http://[2001:db8:0:1::a:c]/`,
}

const rows = (table: Record<string, string>) =>
  Object.entries(table).flatMap(([kind, urls]) => urls.split(/\s+/).map((url) => ({ kind, url })))

const pack = (hosts: Iterable<string>, seed = 1n): PackedHosts => {
  const builder = new HostSetBuilder(seed)
  for (const host of hosts) builder.add(host)
  return builder.pack()
}

describe('a list', () => {
  const blocked = new Set<string>()
  const exempt = new Set<string>()
  parseBlocklist([Buffer.from(LISTED.replaceAll(/\s+/g, '\n'))], { blocked, exempt })
  const listed = pack(blocked)

  // design: 4.14 blocklist
  test.each(rows(BLOCKED))('blocks a host $kind: $url', ({ url }) => {
    expect(covers(listed, hostOf(url))).toBe(true)
  })

  test.each(rows(FINE))('does not block what $kind: $url', ({ url }) => {
    expect(covers(listed, hostOf(url))).toBe(false)
  })

  test.each([
    'http://b\tad.example/',
    'http://bad\n.example/',
    'http://bad.example\r/',
    ' http://bad.example/ ',
    'ht\ntp://bad.example',
  ])('blocks a host with white space that browsers drop: %j', (url) => {
    expect(covers(listed, hostOf(url))).toBe(true)
  })
})

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
