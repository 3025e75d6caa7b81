import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { BlocklistError, parseBlocklist } from './parse.ts'

const parse = (text: string | Uint8Array, chunkBytes = 1_000_000) => {
  const bytes = Buffer.from(text as string)
  const chunks: Uint8Array[] = []
  for (let i = 0; i < bytes.length; i += chunkBytes) chunks.push(bytes.subarray(i, i + chunkBytes))
  const list = { blocked: new Set<string>(), exempt: new Set<string>() }
  return { ...list, unknownLines: parseBlocklist(chunks, list) }
}

/** The hosts of a list, in its order. */
const hostsOf = (text: string, part: 'blocked' | 'exempt' = 'blocked'): string[] => [
  ...parse(text)[part],
]

const entries: { line: string; hosts: string[] }[] = [
  { line: '0.0.0.0 bad.example', hosts: ['bad.example'] },
  { line: '127.0.0.1 bad.example', hosts: ['bad.example'] },
  { line: '127.0.0.1\tbad.example', hosts: ['bad.example'] },
  { line: '127.0.1.1 bad.example', hosts: ['bad.example'] },
  { line: ':: bad.example', hosts: ['bad.example'] },
  { line: '::1   bad.example', hosts: ['bad.example'] },
  { line: '0:0:0:0:0:0:0:0 bad.example', hosts: ['bad.example'] },
  { line: '::ffff:0.0.0.0 bad.example', hosts: ['bad.example'] },
  { line: '  0.0.0.0 bad.example  ', hosts: ['bad.example'] },
  {
    line: '0.0.0.0 bad.example worse.example\twww.worst.example',
    hosts: ['bad.example', 'worse.example', 'www.worst.example'],
  },
  { line: '0.0.0.0 bad.example # worse.example', hosts: ['bad.example'] },
  { line: '0.0.0.0 bad.example#worse.example', hosts: ['bad.example'] },
  { line: '0.0.0.0 bad.example ## worse.example', hosts: ['bad.example'] },
  { line: '0.0.0.0 localhost bad.example', hosts: ['bad.example'] },
  { line: '0.0.0.0 BAD.Example.', hosts: ['bad.example'] },
  { line: '0.0.0.0 192.0.2.7', hosts: ['192.0.2.7'] },
  { line: '0.0.0.0 münchen.example', hosts: ['xn--mnchen-3ya.example'] },
  { line: 'bad.example', hosts: ['bad.example'] },
  { line: 'bad.example # said by someone', hosts: ['bad.example'] },
  { line: 'BAD.EXAMPLE', hosts: ['bad.example'] },
  { line: 'bad.example.', hosts: ['bad.example'] },
  { line: '.bad.example', hosts: ['bad.example'] },
  { line: '*.bad.example', hosts: ['bad.example'] },
  { line: 'bad.example:8080', hosts: ['bad.example'] },
  { line: 'bad.example/', hosts: ['bad.example'] },
  { line: 'b%61d.example', hosts: ['bad.example'] },
  { line: 'ｂａｄ。example', hosts: ['bad.example'] },
  { line: 'xn--mnchen-3ya.example', hosts: ['xn--mnchen-3ya.example'] },
  { line: 'MÜNCHEN.example', hosts: ['xn--mnchen-3ya.example'] },
  { line: 'under_score.example', hosts: ['under_score.example'] },
  { line: 'two--hyphens.example', hosts: ['two--hyphens.example'] },
  { line: 'bad.xn--p1ai', hosts: ['bad.xn--p1ai'] },
  { line: 'localhost.bad.example', hosts: ['localhost.bad.example'] },
  { line: '192.0.2.7', hosts: ['192.0.2.7'] },
  { line: '192.0.2.7:80', hosts: ['192.0.2.7'] },
  { line: '0xc0.0.2.7', hosts: ['192.0.2.7'] },
  { line: '2001:DB8::7', hosts: ['[2001:db8::7]'] },
  { line: '[2001:db8::7]', hosts: ['[2001:db8::7]'] },
  { line: '[2001:db8::7]:443', hosts: ['[2001:db8::7]'] },
  { line: '::ffff:192.0.2.7', hosts: ['192.0.2.7'] },
  { line: '||bad.example^', hosts: ['bad.example'] },
  { line: '||bad.example', hosts: ['bad.example'] },
  { line: '||bad.example^|', hosts: ['bad.example'] },
  { line: '||bad.example/', hosts: ['bad.example'] },
  { line: '||bad.example/*', hosts: ['bad.example'] },
  { line: '||bad.example^*', hosts: ['bad.example'] },
  { line: '||*.bad.example^', hosts: ['bad.example'] },
  { line: '||BAD.example^', hosts: ['bad.example'] },
  { line: '||münchen.example^', hosts: ['xn--mnchen-3ya.example'] },
  { line: '||192.0.2.7^', hosts: ['192.0.2.7'] },
  { line: '||[2001:db8::7]^', hosts: ['[2001:db8::7]'] },
  { line: '||bad.example^$all', hosts: ['bad.example'] },
  { line: '||bad.example^$document', hosts: ['bad.example'] },
  { line: '||bad.example^$third-party', hosts: ['bad.example'] },
  { line: '||bad.example^$doc,popup, important', hosts: ['bad.example'] },
  { line: '||bad.example^$', hosts: ['bad.example'] },
  { line: 'http://bad.example/', hosts: ['bad.example'] },
  { line: 'https://www.bad.example:8443/a/b.exe?c=d#e', hosts: ['www.bad.example'] },
  { line: 'http://192.0.2.7:41000/i', hosts: ['192.0.2.7'] },
  { line: 'http://[2001:db8::7]/i', hosts: ['[2001:db8::7]'] },
  { line: 'HTTP://user:word@BAD.example/x y', hosts: ['bad.example'] },
  { line: 'http://bad.example/a##b', hosts: ['bad.example'] },
]

const passedOver = [
  '',
  '   ',
  '# bad.example',
  '#bad.example',
  '## bad.example',
  '! bad.example',
  '; bad.example',
  '[Adblock Plus 2.0]',
  '[uBlock Origin]',
  '#',
  '##.bad',
  '#@#.bad',
  '127.0.0.1 localhost',
  '127.0.0.1 localhost.localdomain',
  '::1 localhost6.localdomain6',
  '::1 ip6-localhost ip6-loopback',
  '127.0.1.1 myhost',
  '0.0.0.0 0.0.0.0',
  '0.0.0.0 com',
]

const unknown = [
  ...String.raw`com com. .com *.com ||com^ ||*.com^ localhost http://com/ 192.0.2.0/24
    bad.example##.banner bad.example#@#.banner bad.example#?#div bad.example#%#script
    bad.example$$script ||bad.example/path ||bad.example^path ||bad*.example^ ||bad.*^ ||*^ ||^
    ||bad.example^$script ||bad.example^$domain=fine.example ||bad.example^$badfilter
    ||bad.example^$third-party,image ||bad.example^$~third-party ||bad.example^|x @@bad.example
    @@||bad.example/path @@||bad.example^$script |http://bad.example/ /bad\.example/ /banner/*
    -ads- &ad= address=/bad.example/0.0.0.0 bad.example/path bad.example?query
    abuse@bad.example ftp://bad.example/ "bad.example", bad..example! b@d.example http://
    bad.example:port 1.2.3.4.5 xn--a.example`.split(/\s+/),
  '192.168.0.7 nas.example',
  '255.255.255.255 bad.example',
  'bad.example,worse.example##div > .x',
  'bad.example#$#body {}',
  'bad.example worse.example',
  'bad.example CNAME .',
  'a sentence about bad.example.',
  'http://bad example',
  `${'a.'.repeat(122)}bad.example`,
  `http://${'a.'.repeat(122)}bad.example/`,
]

describe('a line', () => {
  test.each(entries)('blocks $hosts: $line', ({ line, hosts }) => {
    expect(hostsOf(line)).toEqual(hosts)
    expect(parse(line)).toMatchObject({ unknownLines: 0 })
  })

  test.each(passedOver)('is passed over: %j', (line) => {
    expect(hostsOf(line)).toEqual([])
    expect(parse(line)).toMatchObject({ unknownLines: 0, exempt: { size: 0 } })
  })

  test.each(unknown)('blocks nothing and counts as unknown: %j', (line) => {
    const withEntry = `${line}\nlisted.example`
    expect(hostsOf(withEntry)).toEqual(['listed.example'])
    expect(parse(withEntry)).toMatchObject({ unknownLines: 1, exempt: { size: 0 } })
  })

  test.each(['@@||fine.example^', '@@||fine.example^$important', '@@||FINE.example'])(
    'exempts a host: %s',
    (line) => {
      expect(hostsOf(line, 'exempt')).toEqual(['fine.example'])
      expect(hostsOf(line)).toEqual([])
    },
  )
})

describe('a file', () => {
  test('may mix formats, line ends and repeated hosts', () => {
    const text =
      '\ufeffbad.example\r\n0.0.0.0 worse.example\n||bad.example^\rhttp://worst.example/x\n\n\nlast.example'
    const hosts = ['bad.example', 'worse.example', 'worst.example', 'last.example']
    expect(hostsOf(text)).toEqual(hosts)
  })

  test('gives the same hosts wherever its bytes are cut', () => {
    const text = [...entries.map(({ line }) => line), ...passedOver, ...unknown].join('\r\n')
    const whole = parse(text)
    for (const chunkBytes of [1, 2, 3, 7, 64, 1000]) {
      const cut = parse(text, chunkBytes)
      expect([cut.blocked.size, cut.unknownLines]).toEqual([whole.blocked.size, whole.unknownLines])
      for (const { hosts } of entries)
        for (const host of hosts) expect(cut.blocked.has(host)).toBe(true)
    }
  })

  test('gives the same hosts whether or not a line has the common form', () => {
    const word = fc.stringMatching(/^[a-z0-9_.-]{1,12}$/)
    const prefix = fc.constantFrom('', '0.0.0.0 ', '127.0.0.1 ', '||')
    fc.assert(
      fc.property(prefix, word, (start, name) => {
        const end = start === '||' ? '^' : ''
        // A second space, or an option, is read in full; the common form beside it is not.
        const plain = `${start}${name}${end}`
        const spaced = start === '||' ? `${plain}$all` : ` ${plain.replace(' ', '  ')} `
        const anchor = '\nlisted.example'
        expect(hostsOf(plain + anchor)).toEqual(hostsOf(spaced + anchor))
      }),
      { numRuns: 2000 },
    )
  })

  test.each(['', '\n', '# only\n! comments\n', '127.0.0.1 localhost\n::1 localhost\n'])(
    'without a word of content is an empty list: %j',
    (text) => {
      expect(parse(text)).toMatchObject({ blocked: { size: 0 }, unknownLines: 0 })
    },
  )

  const broken: { name: string; content: string | Uint8Array; reason: RegExp }[] = [
    { name: 'a NUL byte', content: 'bad.example\nworse\0.example\n', reason: /binary/ },
    { name: 'UTF-16', content: Buffer.from('bad.example\n', 'utf16le'), reason: /binary/ },
    { name: 'gzip', content: Bun.gzipSync(Buffer.from('bad.example\n')), reason: /binary/ },
    { name: 'prose', content: 'No such list.\nSorry.\n', reason: /no entry/ },
    { name: 'JSON', content: '{"error": "not found"}', reason: /no entry/ },
    { name: 'single labels only', content: 'com\nnet\n||org^\n', reason: /no entry/ },
    { name: 'cosmetic rules only', content: 'bad.example##.x\n', reason: /no entry/ },
    {
      name: 'a web page',
      content: '\n  <!DOCTYPE html>\n<p>\nhttps://fine.example/\n</p>\n',
      reason: /web page/,
    },
    { name: 'a line without end', content: 'a.'.repeat(40_000), reason: /longer than 65536/ },
  ]
  test.each(broken)('that is broken is refused: $name', ({ content, reason }) => {
    for (const chunkBytes of [1000, 1_000_000]) {
      expect(() => parse(content, chunkBytes)).toThrow(BlocklistError)
      expect(() => parse(content, chunkBytes)).toThrow(reason)
    }
  })

  test('in Latin-1 is read; only the lines that need those letters are unknown', () => {
    const list = parse(Buffer.from('# caf\xe9\nbad.example\ncaf\xe9.example\n', 'latin1'))
    expect(list.blocked.has('bad.example')).toBe(true)
    expect(list).toMatchObject({ blocked: { size: 1 }, unknownLines: 1 })
  })

  test('blocks no top-level domain, whatever its lines are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 30 }), (line) => {
        const list = parse(`listed.example\n${line.replaceAll('\0', '')}`)
        for (const host of list.blocked) expect(host).toMatch(/[.:]/)
      }),
    )
  })
})
