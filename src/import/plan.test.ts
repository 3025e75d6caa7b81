import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { type Content, imported, outcomesOf } from '../../test/support/imported.ts'
import type { ImportOptions } from './plan.ts'

/** Decisions about rows, and hostile files. */

const BCRYPT = `$2b$12$${'a'.repeat(53)}`

test('paths that differ in letter case only become aliases, and all others codes', async () => {
  const paths = ['AbCdEf', 'abcdef', 'Single1', 'x']
  const { lines } = await imported([
    `url,slug\n${paths.map((path, i) => `https://e.com/${i},${path}`).join('\n')}\n`,
  ])
  expect(lines.map(({ code, aliases }) => [code, aliases])).toEqual([
    [undefined, ['AbCdEf']],
    [undefined, ['abcdef']],
    ['Single1', undefined],
    [undefined, ['x']],
  ])
})

test('the first line of an export is no row, also where one export follows another', async () => {
  const { format, lines, rows } = await imported([
    '{"hopcode_export":1}\n{"code":"SPRING26","url":null}\n' +
      '{"hopcode_export":1}\n{"code":"SUMMER26","url":"https://e.com"}',
  ])
  expect(format).toBe('hopcode')
  expect(lines.map(({ code }) => code)).toEqual(['SPRING26', 'SUMMER26'])
  expect(rows.map(({ line }) => line)).toEqual([2, 4])
})

test('lines without the first line of an export are links of Hopcode if the format is named', async () => {
  const line = { code: 'SPRING26', url: 'https://e.com', aliases: ['a'] }
  expect((await imported([JSON.stringify(line)], { format: 'hopcode' })).lines).toEqual([line])
})

test('an export and a file of another service are one import, in either order', async () => {
  const own = '{"hopcode_export":1}\n{"code":"SPRING26","url":null}\n'
  const other = 'url,slug\nhttps://e.com,summer26\n'
  const codesOf = async (...files: string[]) =>
    (await imported(files)).lines.map(({ code }) => code)
  expect(await codesOf(own, other)).toEqual(['SPRING26', 'summer26'])
  expect(await codesOf(other, own)).toEqual(['summer26', 'SPRING26'])
})

test('links with passwords are never open unless the option says so', async () => {
  const csv =
    'url,slug,password,disabled\nhttps://e.com/1,one-1,secret,\nhttps://e.com/2,two-2,,1\n'
  const pausedIn = async (more: Partial<ImportOptions>) => {
    const { lines, rows } = await imported([csv], more)
    return [lines.map(({ paused }) => paused ?? false), outcomesOf(rows)]
  }
  const kept = await imported([csv])
  expect(kept.lines[0]).toMatchObject({ password: 'secret' })
  expect(kept.lines[0]).not.toHaveProperty('paused')
  expect(await pausedIn({ passwords: 'pause' })).toEqual([
    [true, true],
    ['created', 'created'],
  ])
  expect(await pausedIn({ passwords: 'open' })).toEqual([
    [false, true],
    ['created', 'created'],
  ])
  expect(await pausedIn({ passwords: 'skip', skipDisabled: true })).toEqual([
    [],
    ['left_out', 'left_out'],
  ])
})

test('a text in a column of passwords is one, whatever it says; “false” and nothing are none', async () => {
  const passwords = ['0', 'no', 'off', 'f', 'false', 'FALSE', '', ' ']
  const rows = passwords.map((password, n) => `https://e.com/${n},path-${n},${password}\n`)
  const { lines } = await imported([`url,slug,password\n${rows.join('')}`])
  const paused = passwords.filter((_, n) => lines[n]?.paused)
  expect(paused).toEqual(['0', 'no', 'off', 'f'])
  const flagged = await imported([
    'url,slug,has_password\nhttps://e.com,a-b,no\nhttps://e.org,c-d,yes\n',
  ])
  expect(flagged.lines.map(({ paused }) => paused === true)).toEqual([false, true])
})

test.each([
  ['a plain text', 'open sesame', { password: 'open sesame' }],
  ['a short one', 'abc', { password: 'abc' }],
  ['bcrypt of cost 12', BCRYPT, { password_hash: BCRYPT }],
  ['bcrypt of cost 13', BCRYPT.replace('$12$', '$13$'), undefined],
  ['PBKDF2', 'pbkdf2:sha256:600000$abc$0123', undefined],
  ['Argon2', '$argon2id$v=19$m=19456,t=2,p=1$YWJj$YWJj', undefined],
  ['a hexadecimal hash', 'd41d8cd98f00b204e9800998ecf8427e', undefined],
  ['a hash in base64', '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=', undefined],
  ['a masked one', '****ame', undefined],
  ['a flag', true, undefined],
  ['a word', 'yes', undefined],
])('a password as %s is kept, or its link is paused with a note', async (_, password, kept) => {
  const row = { slug: 'one-1', url: 'https://e.com/1', password }
  const { lines, rows } = await imported([JSON.stringify([row])])
  const { paused, password: plain, password_hash: hash } = lines[0] ?? {}
  const found = hash ? { password_hash: hash } : plain ? { password: plain } : {}
  expect(found).toEqual(kept ?? {})
  expect(paused === true).toBe(kept === undefined)
  expect(rows[0]?.message === '').toBe(kept !== undefined)
})

test('few passwords are sent in one call, because each is hashed', async () => {
  const rows = Array.from({ length: 120 }, (_, n) => `https://e.com/${n},path-${n},secret ${n}\n`)
  const { calls } = await imported([`url,slug,password\n${rows.join('')}`])
  expect(calls).toEqual([50, 50, 20])
})

test('several domains need a choice, and each row still has one result', async () => {
  const csv =
    'Short URL,Long URL\nhttps://a.test/one,https://e.com/1\nhttps://b.test/one,https://e.com/2\n'
  await expect(imported([csv])).rejects.toThrow(/a\.test: 1 rows[\s\S]*b\.test: 1 rows/)
  const first = await imported([csv], { domains: ['b.test'] })
  expect(outcomesOf(first.rows)).toEqual(['other_domain', 'created'])
  const both = await imported([csv], { domains: ['b.test', 'a.test'] })
  expect(both.lines.map(({ url }) => url)).toEqual(['https://e.com/2', 'https://e.com/1'])
})

test('rows of a domain of the service keep it, and further ones are refused', async () => {
  const csv = [
    'Short URL,Long URL',
    'https://GO.test:443/Spring26,https://e.com/1',
    'https://go.test/menu,https://e.com/2',
    'https://old.test/menu,https://e.com/3',
    'https://old.test/spring26,https://e.com/4',
    'https://hop.test/menu,https://e.com/5',
    'https://go.test/AbCdEf,https://e.com/6',
    'https://hop.test/ABCDEF,https://e.com/7',
  ].join('\n')
  const hosts = ['hop.test', 'go.test']
  const [go, old] = [{ domain: 'go.test' }, { domain_aliases: { 'go.test': ['menu'] } }]
  const kept = await imported([csv], { hosts })
  expect(outcomesOf(kept.rows).filter((outcome) => outcome === 'unknown_domain')).toHaveLength(2)
  expect(kept.rows.find(({ line }) => line === 4)?.message).toContain('old.test is not a domain')
  expect(kept.lines).toEqual([
    { code: 'Spring26', url: 'https://e.com/1', ...go },
    { url: 'https://e.com/2', ...go, ...old },
    { url: 'https://e.com/5', aliases: ['menu'] },
    // Codes are the same on all domains: of two links, neither may get this one.
    { url: 'https://e.com/6', ...go, domain_aliases: { 'go.test': ['AbCdEf'] } },
    { url: 'https://e.com/7', aliases: ['ABCDEF'] },
  ])
  const named = await imported([csv], { hosts, domains: ['old.test', 'go.test'] })
  expect(named.lines.slice(0, 2)).toEqual([
    { url: 'https://e.com/3', aliases: ['menu'] },
    { url: 'https://e.com/4', aliases: ['spring26'] },
  ])
  await expect(imported([csv], { hosts, asksDomains: true })).rejects.toThrow('several domains')
  await expect(imported([csv], { hosts: ['hop2.test'] })).rejects.toThrow('several domains')
})

test('a file of one domain needs no choice, and its links keep one of the service', async () => {
  const csv = 'Short URL,Long URL\nhttps://b\u00fccher.test/menu,https://e.com/1\n'
  const [other] = (await imported([csv], { hosts: ['hop.test'], asksDomains: true })).lines
  expect(other).toEqual({ url: 'https://e.com/1', aliases: ['menu'] })
  const host = 'xn--bcher-kva.test'
  const [own] = (await imported([csv], { hosts: ['hop.test', host], asksDomains: true })).lines
  expect(own).toEqual({
    url: 'https://e.com/1',
    domain: host,
    domain_aliases: { [host]: ['menu'] },
  })
})

test('the list of the domains of a file is short', async () => {
  const row = (n: number) => `https://${n}.test/one,https://e.com/\n`
  const rows = Array.from({ length: 60 }, (_, n) => row(n)).join('')
  const problem = await imported([`Short URL,Long URL\n${rows}${row(59)}`]).catch(String)
  expect(problem).toMatch(/:\n {2}59\.test: 2 rows\n[\s\S]*\n {2}and 10 others$/)
})

test('without hits, a maximum is what is left of it', async () => {
  const csv = 'url,slug,hits,max visits\nhttps://e.com/,one-1,7,10\nhttps://e.com/,two-2,9,9\n'
  const { lines, summary } = await imported([csv], { withoutHits: true })
  expect(lines.map(({ hits, max_hits }) => [hits, max_hits])).toEqual([
    [undefined, 3],
    [undefined, 1],
  ])
  expect(summary.hits).toBe(0)
})

test('paths behind addresses are added to all destinations that can have them, on request', async () => {
  const rule = (to: string) => ({
    conditions: [{ type: 'device', matchValue: 'ios' }],
    longUrl: to,
  })
  const links = [
    { shortCode: 'one-1', longUrl: 'https://e.com/1' },
    { shortCode: 'two-2', longUrl: 'https://e.com/2#part' },
    { shortCode: 'six-6', longUrl: 'https://e.com/6', redirectRules: [rule('https://e.com/#ios')] },
  ]
  const file = JSON.stringify(links)
  const forwardingIn = async (options: Partial<ImportOptions>) => {
    const { lines, rows } = await imported([file], options)
    return lines.map(({ forward_path }, at) => [forward_path, rows[at]?.message])
  }
  const note = 'Paths behind its address are not added: its destination has a fragment (#)'
  const lost = [undefined, note]
  expect(await forwardingIn({ appendPaths: true })).toEqual([['append', ''], lost, lost])
  expect(await forwardingIn({})).toEqual(Array(3).fill([undefined, '']))
})

test('a template of golink that is no path at the end is named, and not imported', async () => {
  const row = (Short: string, Long: string) => JSON.stringify({ Short, Long })
  const { rows } = await imported([
    [row('wiki', 'https://e.com/{{.Path}}'), row('me', 'https://e.com/?q={{.User}}')].join('\n'),
  ])
  expect(rows.map(({ outcome, message }) => [outcome, message])).toEqual([
    ['created', ''],
    ['bad_row', 'Its destination has a template'],
  ])
})

test('what Hopcode does not have is listed for each row and as a sum', async () => {
  const links = [
    { key: 'a', domain: 'd.test', url: 'https://e.com/1', geo: { DE: 'x' }, ios: 'y' },
    { key: 'b', domain: 'd.test', url: 'https://e.com/2', geo: null, ios: '' },
  ]
  const { rows, summary } = await imported([JSON.stringify(links)])
  expect(rows.map(({ message }) => message)).toEqual(['Not imported: ios, geo', ''])
  expect(summary.lost).toEqual({ geo: 1, ios: 1 })
})

const IOS = { when: { os: ['ios'] }, url: 'https://e.com/ios' }
const ANDROID = { when: { os: ['android'] }, url: 'https://e.com/android' }
const TARGETED: [service: string, row: object, destinations: object[], message: string][] = [
  [
    'Dub',
    {
      key: 'a',
      domain: 'd.test',
      geo: { DE: 'https://e.com/de', FR: 'https://e.com/fr', AT: 'https://e.com/de' },
      ios: IOS.url,
      android: ANDROID.url,
    },
    [
      IOS,
      ANDROID,
      { when: { country: ['DE', 'AT'] }, url: 'https://e.com/de' },
      { when: { country: ['FR'] }, url: 'https://e.com/fr' },
    ],
    '',
  ],
  [
    'Dub with a bad URL and an unknown country',
    { key: 'a', domain: 'd.test', ios: 'itms:x', android: ANDROID.url, geo: { ZZ: IOS.url } },
    [ANDROID],
    'Not imported: ios, geo',
  ],
  [
    'Dub with countries as JSON in a text',
    { key: 'a', domain: 'd.test', geo: '{"DE":"https://e.com/de"}' },
    [{ when: { country: ['DE'] }, url: 'https://e.com/de' }],
    '',
  ],
  ['Sink', { id: '1', slug: 'a', apple: IOS.url, google: ANDROID.url }, [IOS, ANDROID], ''],
  ['Short.io', { path: 'a', iphoneURL: IOS.url, androidURL: ANDROID.url }, [IOS, ANDROID], ''],
]
test.each(TARGETED)('targeting of %s is kept', async (service, row, destinations, message) => {
  const url = service === 'Short.io' ? 'originalURL' : 'url'
  const { rows, lines } = await imported([JSON.stringify([{ ...row, [url]: 'https://e.com/' }])])
  expect(lines).toMatchObject([{ url: 'https://e.com/', destinations }])
  expect(rows.map((one) => one.message)).toEqual([message])
})

const HOSTILE: [name: string, row: string, outcome: string, message: RegExp][] = [
  ['no destination', ',abc', 'invalid_url', /no destination/],
  ['a path out of the folder', 'https://e.com,../../etc/passwd', 'invalid_path', /segment/],
  ['a path of a whole short URL that is malformed', 'https://e.com,%00', 'created', /^$/],
  ['a path with a NUL', 'https://e.com,a\u0000b', 'invalid_path', /control/],
  ['a path of 300 bytes', `https://e.com,${'x'.repeat(300)}`, 'invalid_path', /255/],
  ['a negative count', 'https://e.com,abc,-5', 'created', /no number of hits/],
  ['a huge count', `https://e.com,abc,${'9'.repeat(30)}`, 'created', /no number of hits/],
  ['a date of the year 0', 'https://e.com,abc,1,0000-00-00 00:00:00', 'created', /no date/],
  ['a date of the year 99999', 'https://e.com,abc,1,99999-01-01', 'created', /no date/],
  [
    'a creation on a day that does not exist',
    'https://e.com,abc,1,2023-02-29',
    'created',
    /no date/,
  ],
  [
    'an expiry on a day that does not exist',
    'https://e.com,abc,,,,,2030-02-30',
    'bad_row',
    /expires_at/,
  ],
  ['an expiry that MySQL left empty', 'https://e.com,abc,,,,,0000-00-00 00:00:00', 'created', /^$/],
  ['a date in an unknown order', 'https://e.com,abc,1,02.01.2024', 'bad_row', /order of dates/],
  ['a long title', `https://e.com,abc,1,2024-01-01,${'x'.repeat(300)}`, 'created', /cut to 200/],
  [
    '25 tags',
    `https://e.com,abc,1,,,${Array.from({ length: 25 }, (_, n) => n).join('|')}`,
    'created',
    /20 of 25/,
  ],
]
test.each(HOSTILE)('%s: the row has one result', async (_, row, outcome, message) => {
  const { rows } = await imported([`url,slug,hits,created,title,tags,expires\n${row}\n`])
  expect(outcomesOf(rows) as string[]).toEqual([outcome])
  expect(rows[0]?.message).toMatch(message)
})

const deep = `[${'['.repeat(100_000)}${']'.repeat(100_000)}]`
const PAGE = JSON.stringify({
  shortUrls: {
    data: [{ shortCode: 'one', longUrl: 'https://e.com/' }],
    pagination: { currentPage: 1, pagesCount: 3 },
  },
})

function otherDatabase(): Uint8Array<ArrayBuffer> {
  using db = new Database(':memory:')
  db.run('CREATE TABLE other (a)')
  return new Uint8Array(db.serialize())
}

const REFUSED: [name: string, content: Content, message: RegExp][] = [
  ['an empty file', '', /no links/],
  ['a file without a destination', 'a,b\n1,2\n', /no column/],
  ['1,000 columns', `url,${'a,'.repeat(1000)}b\nhttps://e.com\n`, /more than 200 columns/],
  [
    'a dump of 1,000 columns',
    `INSERT INTO \`yourls_url\` (keyword, url${', a'.repeat(1000)}) VALUES ('1');\n`,
    /more than 200 columns/,
  ],
  ['a quote that is never closed', `url,slug\n"https://e.com,x\n${'y'.repeat(3_000_000)}`, /quote/],
  ['a field of 10 MB', `url,slug\nhttps://e.com,${'y'.repeat(10_000_000)}\n`, /million characters/],
  ['100,000 levels of JSON', deep, /no links|no column/],
  ['JSON that is cut off', '{"links":[{"url":"https://e.com","slug":"a"}', /JSON/],
  ['a text of 10 MB in JSON', `[{"url":"${'x'.repeat(10_000_000)}`, /no links, or a very long one/],
  ['a long value in JSON', `[{"url":"x","a":[${'[],'.repeat(150_000)}[]]}]`, /a very long one/],
  [
    'a page of several',
    '{"links":[{"url":"https://e.com","slug":"a"}],"list_complete":false}',
    /Pages are missing/,
  ],
  ['a page of three', PAGE, /1 of 3/],
  ['a dump without links', 'INSERT INTO `other` (`a`) VALUES (1);\n', /no table of links/],
  ['a dump that is cut off', `INSERT INTO \`yourls_url\` VALUES ('1','https`, /middle/],
  ['another database', otherDatabase(), /no table of links/],
  ['a damaged database', Buffer.from(`SQLite format 3\0${'x'.repeat(5000)}`), /cannot be/],
]
test.each(REFUSED)('%s is refused before anything is written', async (_, content, message) => {
  await expect(imported([content])).rejects.toThrow(message)
})

const YOURLS_ROW = "INSERT INTO `yourls_url` (`keyword`, `url`) VALUES ('1', 'https://e.com');\n"

const SLOW: [name: string, content: string][] = [
  ['a path of many slashes', `url,slug\nhttps://e.com,x${'/'.repeat(900_000)}x\n`],
  [
    'many empty lines in a table of a dump',
    `CREATE TABLE a (${'\n'.repeat(65_000)});\n`.repeat(30),
  ],
  ['many spaces in a row of a dump', `INSERT INTO a${' '.repeat(4000)};\n`.repeat(5000)],
]
// Each would take minutes if the time were quadratic.
test.each(SLOW)('%s: reading takes time in proportion to the length', async (_, content) => {
  const file = `${content}${content.startsWith('url') ? '' : YOURLS_ROW}`
  expect((await imported([file])).rows).toHaveLength(1)
})

const REPEATS: [name: string, content: string, outcomes: string[], message: string][] = [
  ['a path', 'url,slug\nhttps://e.com/1,x\nhttps://e.com/2,x\n', ['created', 'repeated'], 'line 2'],
  [
    'a URL',
    'url,slug\nHTTPS://E.com:443/1,x\nhttps://e.com/1,\n',
    ['created', 'repeated'],
    'line 2',
  ],
  [
    'the path of an older row',
    'url,slug,created\nhttps://e.com/1,x,2024-01-02\nhttps://e.com/2,x,2024-01-01\n',
    ['repeated', 'created'],
    'line 3',
  ],
  [
    'a line of an export',
    '{"hopcode_export":1}\n{"code":"SPRING26","url":null}\n{"code":"spring26","url":"https://e.com"}',
    ['created', 'repeated'],
    'line 2',
  ],
]
test.each(REPEATS)(
  'a dry run names the row that %s repeats',
  async (_, content, outcomes, message) => {
    const { rows } = await imported([content], { dryRun: true })
    expect(outcomesOf(rows) as string[]).toEqual(outcomes)
    expect(rows.find(({ outcome }) => outcome === 'repeated')?.message).toBe(`Repeats ${message}`)
    expect(outcomesOf((await imported([content])).rows)).toEqual(['created', 'created'])
  },
)

test('a row that repeats one which cannot be imported is no repetition', async () => {
  const content = 'url,slug\nmailto:a@b.example,x\nhttps://e.com/2,x\n'
  const { rows } = await imported([content], { dryRun: true })
  expect(outcomesOf(rows)).toEqual(['invalid_url', 'created'])
})

const database = new Database(':memory:')
database.run('CREATE TABLE urls (id INT, short_url TEXT, long_url TEXT, team TEXT, spare TEXT)')
database.run("INSERT INTO urls VALUES (1, 'a-b', 'https://e.com', 'Sales', NULL)")

const WITH_TEAM: [string, Content][] = [
  [
    'CSV',
    'id,url,slug,team,spare,flag\n1,https://e.com,a-b,Sales,,0\n2,https://e.org,c-d,IT,,no\n',
  ],
  ['JSON', '[{"id":7,"url":"https://e.com","slug":"a-b","team":{"name":"Sales"},"spare":[]}]'],
  [
    'SQL',
    "INSERT INTO urls (id, url, keyword, team, spare) VALUES (1,'https://e.com','a','IT','');",
  ],
  ['SQLite', new Uint8Array(database.serialize())],
]

test.each(WITH_TEAM)(
  'of %s, columns that have values and no meaning are named once',
  async (_, file) => {
    const { lines, summary } = await imported([file])
    expect(lines[0]).toMatchObject({ url: 'https://e.com' })
    expect(summary.unread).toEqual(['team'])
  },
)

test('of a file with a name in each row, some names are kept', async () => {
  const rows = Array.from({ length: 90 }, (_, n) => ({ url: 'https://e.com', [`x${n}`]: 'y' }))
  expect((await imported([JSON.stringify(rows)])).summary.unread).toHaveLength(50)
})
