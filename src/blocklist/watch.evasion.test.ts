import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { createLog } from '../lib/log.ts'
import { Url } from '../links/url.ts'
import { Blocklist } from './watch.ts'

/**
 * Ways to write a blocked host so that a judge misses it while a browser finds it, each through the
 * judgement that a creation makes: first `Url`, which may refuse, then the list. Every URL here is
 * judged by hand: `blocked` leads a browser to a listed host, `fine` does not, and `refused` is no
 * URL that the service takes.
 */

const LISTED = [
  'evil.com',
  'xn--bcher-kva.example',
  'faß.example',
  'παράδειγμα.example',
  '日本語.example',
  '192.0.2.33',
  '127.0.0.1',
  '2001:db8::bad',
  'a.b.deep.example',
  'i❤.example',
  'co.example',
  'under_score.example',
]

const words = (text: string) => text.trim().split(/\s+/)

const BLOCKED: Record<string, string[]> = {
  'as it is listed': words('http://evil.com https://evil.com/a?b#c http://UNDER_SCORE.example/'),
  'in capitals': words('HTTP://EVIL.COM/ https://eViL.cOm https://EVIL.com:443/'),
  'with dots at its end': words(`https://evil.com./ https://evil.com.:8443/ https://evil.com../
    https://evil.com%2e/ https://evil.com。/ https://evil.com．/ https://evil.com｡/`),
  'as a subdomain': words(`https://www.evil.com/ https://a.b.c.evil.com/ https://WWW.EVIL.COM./
    https://evil.com.evil.com/ https://x--y.evil.com/ https://_x.evil.com/ https://1.evil.com/
    https://xn--bcher-kva.evil.com/ https://bücher.evil.com/ https://www.a.b.deep.example/
    https://*.evil.com/ https://192.0.2.1.evil.com/ https://.evil.com/ https://..evil.com/
    https://a..evil.com/ https://-.evil.com/ https://www.co.example/`),
  'on a port': words(`https://evil.com:1/ https://evil.com:/ https://evil.com:00443/
    https://evil.com:65535/ http://192.0.2.33:8080/ http://[2001:db8::bad]:8080/`),
  'behind userinfo': words(`https://good.com@evil.com/ https://good.com:80@evil.com/
    https://@evil.com/ https://:@evil.com/ https://good.com%2f@evil.com/ https://a@b@evil.com/
    https://good.com%40x@evil.com/ https://good.com%5c@evil.com/ https://good.com%23@evil.com/
    https://good.com%3f@evil.com/ https://good.com;@evil.com/ https://a:b@c:d@evil.com:8/
    https://good.com&x=@evil.com/ https://good.com%00@evil.com/ https://u:p@192.0.2.33/
    https://u@[2001:db8::bad]/ https://[::1]@evil.com/`),
  'percent-encoded': words(`https://%65vil.com/ https://%45VIL.com/ https://evil%2ecom/
    https://evil%2Ecom/ https://%65%76%69%6c%2e%63%6f%6d/ https://evi%6C.c%6fm/
    https://b%C3%BCcher.example/ https://b%c3%bccher.example/ https://evil%E3%80%82com/
    https://evil%EF%BC%8Ecom/ https://evil%EF%BD%A1com/ https://%EF%BD%85vil.com/
    https://192%2e0%2e2%2e33/ https://%31%39%32.0.2.33/ https://e%C2%ADvil.com/
    https://e%E2%80%8Bvil.com/ https://%E6%97%A5%E6%9C%AC%E8%AA%9E.example/`),
  'with other full stops': words(`https://evil。com/ https://evil．com/ https://evil｡com/
    https://www。evil．com｡/ http://192。0．2｡33/ https://a。b．deep｡example/`),
  'in letters that count alike': words(`https://ｅｖｉｌ.com/ https://ＥＶＩＬ.ＣＯＭ/
    https://ｅｖｉｌ．ｃｏｍ/ https://𝐞𝐯𝐢𝐥.com/ https://𝑒𝓋𝒾𝓁.com/ https://𝕖𝕧𝕚𝕝.𝕔𝕠𝕞/ https://𝖊𝖛𝖎𝖑.com/
    https://𝚎𝚟𝚒𝚕.com/ https://ⓔⓥⓘⓛ.com/ https://ⒺⓋⒾⓁ.ⒸⓄⓂ/ https://ᵉᵛⁱˡ.com/ https://ᴱⱽᴵᴸ.com/
    https://ℯⅴⅰⅼ.com/ https://ⅇⅴⅈⅼ.ⅽℴⅿ/ https://ＥＶＩＬ。com/ https://ℰⅤℐℒ.com/`),
  'with signs that nobody sees': [
    '\u00ad',
    '\u200b',
    '\u2060',
    '\ufeff',
    '\ufe0f',
    '\ufe00',
    '\u{e0100}',
    '\u034f',
    '\u180b',
  ].flatMap((sign) => [`https://e${sign}vil.com/`, `https://evil.com${sign}/`]),
  'in Unicode or punycode': words(`https://bücher.example/ https://BÜCHER.EXAMPLE/
    https://bu\u0308cher.example/ https://BU\u0308CHER.example/ https://xn--bcher-kva.example/
    https://XN--BCHER-KVA.EXAMPLE/ https://Xn--Bcher-Kva.example./ https://faß.example/
    https://FAẞ.example/ https://xn--fa-hia.example/ https://παράδειγμα.example/
    https://ΠΑΡΆΔΕΙΓΜΑ.example/ https://xn--hxajbheg2az3al.example/ https://日本語.example/
    https://xn--wgv71a119e.example/ https://XN--WGV71A119E.example/ https://i❤.example/
    https://i❤\ufe0f.example/ https://xn--i-7iq.example/ https://ｂücher.example/`),
  'as IPv4': words(`http://192.0.2.33/ http://192.0.2.33./ http://3221226017/ http://0xc0000221/
    http://0XC0000221/ http://030000001041/ http://0300.0.2.041/ http://0300.0000.0002.0041/
    http://192.0.545/ http://192.545/ http://192.0x221/ http://192.01041/ http://0xc0.0.2.33/
    http://0xC0.0X0.0x2.0X21/ http://192.0.0x221/ http://0300.0x0.2.33/ http://192.0.2.0x21/
    http://192.0.2.041/ http://00000000300.0.2.33/ http://0x00000000c0.0.2.33/
    http://１９２.０.２.３３/ http://①⑨②.⓪.②.③③/ http://192.0.2.³³/ http://¹⁹².0.2.33/
    http://𝟙𝟡𝟚.𝟘.𝟚.𝟛𝟛/ http://127.1/ http://127.0.1/ http://0x7f.1/ http://0177.1/
    http://2130706433/
    http://0x7f000001/ http://017700000001/ http://127.0.0.1:80/ http://0177.0.0.0x1/
    http://0x7f.0.0x1/`),
  'as IPv6': words(`http://[2001:db8::bad]/ http://[2001:DB8::BAD]/ http://[2001:db8:0::bad]/
    http://[2001:0db8:0000:0000:0000:0000:0000:0bad]/ http://[2001:db8:0:0:0:0:0:bad]/
    http://[2001:db8::0:0:bad]/ http://[2001:db8::0.0.11.173]/`),
  'as IPv4 within IPv6': words(`http://[::ffff:192.0.2.33]/ http://[::FFFF:c000:221]/
    http://[::ffff:C000:0221]/ http://[0:0:0:0:0:ffff:192.0.2.33]/ http://[::192.0.2.33]/
    http://[::c000:221]/ http://[64:ff9b::192.0.2.33]/ http://[64:ff9b::c000:221]/
    http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[0000::ffff:7f00:0001]:80/`),
  'as IPv4 that a gateway or a tunnel reaches by IPv6': words(`http://[2002:c000:221::1]/
    http://[2002:C000:0221:1:2:3:4:5]/ http://[2002:c000:221::]/ http://[2002:7f00:1::1]/
    http://[64:ff9b:1::c000:221]/ http://[64:ff9b:1:fffe::c000:221]/ http://[::ffff:0:c000:221]/
    http://[::ffff:0:192.0.2.33]/ http://[0:0:0:0:ffff:0:c000:221]/
    http://[2001:0:1:2:3:4:3fff:fdde]/ http://[2001::3fff:fdde]/`),
  'with a path that looks like a host': words(`https://evil.com/@good.com https://evil.com?@good.com
    https://evil.com#@good.com https://evil.com/https://good.com/ https://evil.com\\@good.com/
    https://evil.com\\good.com https://evil.com:443\\@good.com`),
  'behind many labels': [
    `https://${'a.'.repeat(120)}evil.com/`,
    `https://${'a.'.repeat(2000)}evil.com/`,
    `https://${'x'.repeat(63)}.evil.com/`,
    `https://${'x'.repeat(5000)}.evil.com/`,
    `https://${'ü'.repeat(20)}.evil.com/`,
  ],
  'our own': words(`https://hop.test/x http://HOP.TEST:8080/ https://hop.test./ https://ｈｏｐ.test/
    https://cdn.test/ https://x@cdn.test/ https://hop%2etest/`),
}

const FINE: Record<string, string[]> = {
  'a neighbour by name': words(`https://notevil.com/ https://evil.co/ https://evil.co.uk/
    https://evil.comm/ https://evil.com.au/ https://xevil.com/ https://evil-com/ https://evilcom/
    https://evil/ https://com/ https://e.vil.com/ https://vil.com/ https://-evil.com/
    https://evil_.com/ https://under-score.example/ https://evil..com/ https://deep.example/
    https://b.deep.example/
    https://xa.b.deep.example/ https://example/ https://coxexample/ https://disco.example/`),
  'the listed name in front': words(`https://evil.com.example/ https://evil.com.good.com/
    https://evil.com-good.com/ https://evil.com。good.com/ https://www.evil.com.example./
    https://192.0.2.33.example/ https://xn--bcher-kva.example.org/`),
  'the listed name elsewhere': words(`https://good.com/evil.com https://good.com/https://evil.com/
    https://evil.com@good.com/ https://evil.com:80@good.com/ https://good.com?evil.com
    https://good.com#evil.com https://good.com#@evil.com https://good.com?u=http://evil.com/
    https://good.com/@evil.com https://good.com\\@evil.com https://evil.com%2f@good.com/
    https://good.com/%2f%2fevil.com`),
  'a look-alike of another alphabet': words(`https://\u0435vil.com/ https://ev\u0456l.com/
    https://evil.c\u043em/ https://evіӏ.com/ https://bucher.example/ https://buecher.example/
    https://fass.example/ https://日本.example/ https://xn--mnchen-3ya.example/ https://eviI1.com/
    https://evıl.com/ https://evil\u0323.com/ https://evi1.com/`),
  'another address': words(`http://192.0.2.34/ http://192.0.2.3/ http://192.0.33/ http://192.2.33/
    http://3221226018/ http://0xc0000222/ http://33.2.0.192/ http://127.0.0.2/ http://128.0.0.1/
    http://192.0.2.0/ http://[::ffff:192.0.2.34]/ http://[::fffe:192.0.2.33]/
    http://[2001:db8::192.0.2.33]/ http://[2001:db8::bae]/ http://[2001:db8::bad:0]/
    http://[2001:db8::ba]/ http://[::1]/ http://[2001:db8:bad::]/ http://0300.0.2.042/
    http://[2002:c000:222::1]/ http://[2003:c000:221::1]/ http://[64:ff9b:1::c000:222]/
    http://[64:ff9b:2::c000:221]/ http://[64:ff9b::1:c000:221]/ http://[64:ff9a::c000:221]/
    http://[2001:0:1:2:3:4:3fff:fddd]/ http://[2001:1:1:2:3:4:3fff:fdde]/
    http://[1::ffff:c000:221]/ http://[::1:ffff:0:c000:221]/ http://[::1:c000:221]/`),
  'a neighbour of ours': words(`https://nothop.test/ https://hop.test.example/ https://x.hop.test/
    https://hop.tes/ https://hoptest/`),
}

const REFUSED: Record<string, string[]> = {
  'slashes that browsers mend': words(`http:/evil.com http:evil.com http:///evil.com
    https:////evil.com http:\\\\evil.com http:/\\evil.com http://\\evil.com https:\\/evil.com
    http:?evil.com //evil.com \\\\evil.com /evil.com evil.com http:// https://? https://# https:///
    http://@/ http://:80/ https://u@/`),
  'white space and controls': [
    ...[
      '\t',
      '\n',
      '\r',
      '\0',
      ' ',
      '\u00a0',
      '\u3000',
      '\u2028',
      '\u0085',
      '\u007f',
      '\v',
    ].flatMap((sign) => [
      `https://ev${sign}il.com/`,
      `${sign}https://evil.com/`,
      `https://evil.com/${sign}`,
    ]),
    'ht\ttps://evil.com/',
    'https:/\n/evil.com/',
    'https://evil.com\ud800/',
  ],
  'other schemes': words(`javascript://evil.com/%0aalert(1) data:text/html,evil.com ftp://evil.com/
    blob:https://evil.com/ view-source:https://evil.com/ httpss://evil.com/ ｈttp://evil.com/
    http：//evil.com/ http:／／evil.com/ https;//evil.com/ feed:https://evil.com/`),
  'hosts that are none': words(`https://evil%00.com/ https://evil%20.com/ https://evil.com%2fx/
    https://evil.com%5cx/ https://evil.com%40x/ https://evil%.com/ https://evil%2.com/
    https://evil|.com/ https://evil<.com/ https://evil^.com/ https://[evil.com]/ https://[::1/
    https://evil.com:65536/ https://evil.com:x/ https://evil.com:-1/ http://192.0.2.256/
    http://192.0.2.33.1/ http://4294967296/ http://0x100000000/
    http://192.0.2.08/ http://1.2.3.4.5/ http://[2001:db8::bad%eth0]/ http://[2001:db8::bad%25eth0]/
    http://[::ffff:192.0.2.033]/ http://[2001:db8:::bad]/ http://[::192.0.2.33.]/
    https://xn--a/ https://xn--ü.example/ https://xn--bcher-kvb.example/
    https://evil℀.com/ https://[::ffff:192.0.2.33/`),
}

const folder = temporaryFolder()
let blocklist: Blocklist

beforeAll(async () => {
  const file = join(folder.path, 'list.txt')
  writeFileSync(file, LISTED.join('\n'))
  blocklist = await Blocklist.open({
    files: [file],
    ownHosts: ['https://hop.test', 'https://cdn.test/images'],
    thread: new URL('../threads/blocklist.ts', import.meta.url),
    log: createLog({ level: 'silent' }),
  })
  await blocklist.close()
})

afterAll(() => folder[Symbol.dispose]())

type Judgement = 'blocked' | 'fine' | 'refused'

/** The judgement of `shorten`. */
function judge(url: string): Judgement {
  const { success, data } = Url.safeParse(url)
  if (!success) return 'refused'
  return blocklist.isBlocked(data) ? 'blocked' : 'fine'
}

const rows = (table: Record<string, string[]>) =>
  Object.entries(table).flatMap(([kind, urls]) => urls.map((url) => ({ kind, url })))

// design: 4.14 blocklist
describe('the host', () => {
  test.each(rows(BLOCKED))('$kind is blocked: $url', ({ url }) => {
    expect(judge(url)).toBe('blocked')
  })

  test.each(rows(FINE))('$kind is not: $url', ({ url }) => {
    expect(judge(url)).toBe('fine')
  })

  test.each(rows(REFUSED))('$kind is no URL: %#', ({ url }) => {
    expect([url, judge(url)]).toEqual([url, 'refused'])
  })
})

const ENTRIES = 1_000_000
/** More than twice what was measured. */
const PEAK_MIB_MAX = 200

/** Says how many hosts it loaded, and by how many MiB that raised the most memory it ever held. */
const LOADING = `
  import { readFileSync } from 'node:fs'
  import { Blocklist } from '${join(import.meta.dir, 'watch.ts')}'
  const silent = () => {}
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const mostMib = () => /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1] / 1024
  const before = mostMib()
  const thread = '${join(import.meta.dir, '../threads/blocklist.ts')}'
  const blocklist = await Blocklist.open({ files: [process.argv[1]], ownHosts: [], log, thread })
  await blocklist.close()
  console.log(JSON.stringify([blocklist.state().entries, mostMib() - before]))
`

// A process of its own, because this one's memory includes what earlier tests left.
test.skipIf(process.platform !== 'linux')(
  'a million hosts are loaded from a file without a flood of memory',
  () => {
    const file = join(folder.path, 'million.txt')
    const host = (i: number) => `${(i * 2_654_435_761) % 4_294_967_296}-${i}.example`
    writeFileSync(file, Array.from({ length: ENTRIES }, (_, i) => `0.0.0.0 ${host(i)}\n`).join(''))
    const { stdout } = Bun.spawnSync([process.execPath, '-e', LOADING, file])
    const [entries, peakMib] = JSON.parse(stdout.toString())
    expect(entries).toBe(ENTRIES)
    expect(peakMib).toBeWithin(1, PEAK_MIB_MAX)
  },
)
