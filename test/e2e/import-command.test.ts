import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  binary,
  command,
  makeAccount,
  Service,
  type Settings,
  unlimited,
} from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** `hopcode import` and `hopcode export`, against a running service. */

const EMAIL = 'enterprise@example.com'
const CSV = [
  'Short URL,Long URL,Title,Clicks,Created at',
  'https://go.test/Spring26,https://example.com/1,One,7,2020-01-02',
  'https://go.test/spring-sale,https://example.com/2,Two,,2019-01-02',
  'https://go.test/AbCdEf,https://example.com/3,,,',
  'https://go.test/abcdef,https://example.com/4,,,',
  'https://go.test/api/status,https://example.com/5,,,',
  'https://go.test/bad-url,mailto:a@b.example,,,',
]

async function setUp() {
  const folder = temporaryFolder()
  const env = { ...unlimited(join(folder.path, 'data')), BASE_URL: 'http://hop.test' }
  const file = join(folder.path, 'links.csv')
  writeFileSync(file, `${CSV.join('\n')}\n`)
  const key = await makeAccount(env)
  const run = (args: string, more: Settings = {}) => command(args.split(' '), { ...env, ...more })
  return { folder, env, file, key, run, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

test('a file is imported with a report, and again without a change', async () => {
  using set = await setUp()
  const { env, file, run, folder } = set
  await using service = await Service.start(env)
  const report = join(folder.path, 'report.csv')
  const dry = await run(`import auto ${file} --account ${EMAIL} --dry-run`)
  expect([dry.code, dry.out]).toEqual([1, expect.stringContaining('CSV: 6 rows, as a dry run')])
  expect((await service.fetch('/spring26')).status).toBe(404)
  const first = await run(`import csv ${file} --account ${EMAIL} --report ${report}`)
  expect([first.code, first.err]).toEqual([1, ''])
  const lines = readFileSync(report, 'utf8').trim().split('\r\n')
  expect(lines[0]).toBe('line,path,outcome,code,message')
  expect(lines.slice(1).map((line) => line.split(',').slice(0, 3).join())).toEqual([
    '4,AbCdEf,created_alias',
    '5,abcdef,created_alias',
    '6,api/status,reserved_path',
    '7,bad-url,invalid_url',
    '3,spring-sale,created_alias',
    '2,Spring26,created',
  ])
  for (const [path, url] of [
    ['spring26', 'https://example.com/1'],
    ['Spring26', 'https://example.com/1'],
    ['spring-sale', 'https://example.com/2'],
    ['AbCdEf', 'https://example.com/3'],
    ['abcdef', 'https://example.com/4'],
  ]) {
    expect((await service.fetch(`/${path}`)).headers.get('location')).toBe(url as string)
  }
  const again = await run(`import auto ${file} --account ${EMAIL}`)
  expect(again.out).toMatch(/4 {2}exists already/)
  const { code, out, err } = await run(`export - --account ${EMAIL}`)
  expect([code, err]).toEqual([0, 'Exported to standard output\n'])
  const links = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
    .filter((line) => !('hopcode_export' in line))
  expect(links).toMatchObject([
    { url: 'https://example.com/3', aliases: ['AbCdEf'] },
    { url: 'https://example.com/4', aliases: ['abcdef'] },
    { url: 'https://example.com/2', aliases: ['spring-sale'] },
    { code: 'Spring26', url: 'https://example.com/1', title: 'One', hits: 9 },
  ])
  expect((await run('check')).out).toContain('All is well.')
})

test('a file without a format is recognized, and --json has the counts by identifier', async () => {
  using set = await setUp()
  await using _service = await Service.start(set.env)
  const dry = await set.run(`import ${set.file} --account ${EMAIL} --dry-run --json`)
  expect([dry.code, dry.err, dry.out.trim().split('\n').length]).toEqual([1, '', 1])
  const counts = { created: 1, created_alias: 3, invalid_url: 1, reserved_path: 1 }
  expect(JSON.parse(dry.out)).toEqual({
    format: 'csv',
    dry_run: true,
    rows: 6,
    created: 4,
    refused: 2,
    counts,
    hits: 7,
    not_supported: {},
    columns_not_read: [],
    report: null,
  })
  const { code, out } = await set.run(`import ${set.file} --account ${EMAIL}`)
  expect(code).toBe(1)
  expect(out).toContain('3  created, with the path as an alias')
  expect(out).not.toMatch(/[a-z]_[a-z]/)
  // A file that has the name of a format is named with its folder.
  const kutt = join(set.folder.path, 'kutt')
  writeFileSync(kutt, readFileSync(set.file))
  expect((await set.run(`import ${kutt} ${set.file} --account ${EMAIL}`)).out).toContain('12 rows')
})

test('--json of export, backup and health is one object', async () => {
  using set = await setUp()
  const down = await set.run('health --json', { PORT: '1' })
  expect([down.code, down.err, JSON.parse(down.out).ready]).toEqual([1, '', false])
  await using service = await Service.start(set.env)
  const up = await set.run('health --json', { PORT: '1' })
  expect([up.code, JSON.parse(up.out)]).toEqual([
    0,
    { ready: true, url: expect.stringMatching(/\/-\/ready$/) },
  ])
  expect((await service.fetch('/-/ready')).status).toBe(200)
  writeFileSync(
    set.file,
    'Short URL,Long URL,Title\nhttps://go.test/Spring26,https://e.com/,"a "" b"\n',
  )
  expect((await set.run(`import ${set.file} --account ${EMAIL}`)).code).toBe(0)
  for (const format of ['jsonl', 'csv']) {
    const file = join(set.folder.path, `links.${format}`)
    const { code, out } = await set.run(
      `export ${file} --account ${EMAIL} --format ${format} --json`,
    )
    const bytes = readFileSync(file).length
    expect([code, JSON.parse(out)]).toEqual([0, { file, format, links: 1, bytes }])
  }
  const piped = await set.run(`export - --account ${EMAIL} --json`)
  expect(JSON.parse(piped.err)).toMatchObject({ file: '-', links: 1 })
  const file = join(set.folder.path, 'now.hopcode')
  const backup = await set.run(`backup ${file} --json`)
  expect([backup.code, JSON.parse(backup.out)]).toEqual([
    0,
    { file, accounts: 1, links: 1, redirects: expect.any(Number), created_at: expect.any(String) },
  ])
})

test('success has no color on a terminal', async () => {
  using set = await setUp()
  await using _service = await Service.start(set.env)
  const line = `${await binary()} export - --account ${EMAIL} > ${set.folder.path}/out`
  const env = { ...set.env, PATH: process.env.PATH ?? '', TERM: 'xterm-256color' }
  const script = Bun.spawn(['script', '-qec', line, '/dev/null'], { env, stdin: 'ignore' })
  const shown = await new Response(script.stdout).text()
  expect([await script.exited, shown]).toEqual([0, expect.stringContaining('Exported to')])
  expect(shown).not.toContain('\u001b[3')
})

test('control characters of a file do not reach the terminal', async () => {
  using set = await setUp()
  const { env, file, run } = set
  await using _service = await Service.start(env)
  writeFileSync(file, 'Short URL,Long URL\nhttps://go.test/%1B[31mred,https://example.com/\n')
  const { out } = await run(`import auto ${file} --account ${EMAIL} --dry-run`)
  expect(out).toContain('/%1B[31mred')
  expect(out).not.toContain('\u001b')
})

const ESCAPES = '\u001b[2J\u009b31m\u202ex\rhidden'
const PRINTED: [where: string, content: string][] = [
  ['the name of a column', `${ESCAPES},b\n1,2\n`],
  ['a domain', `URL,Domain\nhttps://e.com,a.test\nhttps://e.com,${ESCAPES}\n`],
  ['a path of an unknown form', `URL,Slug\nftp://e.com/,${ESCAPES}\n`],
]
test.each(PRINTED)('a terminal interprets nothing of %s of a file', async (_, content) => {
  using set = await setUp()
  await using _service = await Service.start(set.env)
  writeFileSync(set.file, content)
  const { code, out, err } = await set.run(`import auto ${set.file} --account ${EMAIL} --dry-run`)
  expect(code).toBeGreaterThan(0)
  expect(out + err).toMatch(/2j/i)
  expect(out + err).not.toMatch(/[^\P{Cc}\t\n]|\p{Bidi_Control}/u)
})

test('an export that is refused leaves an existing file as it is', async () => {
  using set = await setUp()
  await using service = await Service.start(set.env)
  const remote = { HOPCODE_URL: service.url, HOPCODE_API_KEY: 'wrong' }
  expect((await set.run(`export ${set.file} --account nobody@example.com`)).code).toBe(1)
  expect((await set.run(`export ${set.file}`, remote)).code).toBe(1)
  expect(readFileSync(set.file, 'utf8')).toContain('Spring26')
})

test('a report or an export that cannot be written is refused before anything is changed', async () => {
  using set = await setUp()
  await using _service = await Service.start(set.env)
  const path = join(set.folder.path, 'missing', 'file')
  for (const args of [`import csv ${set.file} --report ${path}`, `export ${path}`]) {
    const { code, out, err } = await set.run(`${args} --account ${EMAIL}`)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^hopcode: \S+ cannot be written: .*\n$/)
  }
  expect((await set.run(`export - --account ${EMAIL}`)).out).not.toContain('example.com/1')
})

test('with a key it works from another machine, and the plan bounds each request', async () => {
  using set = await setUp()
  const { env, file, run } = set
  await makeAccount(env, 'pro')
  const { api_key: key } = JSON.parse(
    (await run('account create --email free@example.com --plan free --json')).out,
  ) as { api_key: string }
  await using service = await Service.start({ ...env, ALIASES: 'owners' })
  const rows = Array.from({ length: 250 }, (_, n) => `https://example.com/${n},code${n}x`)
  writeFileSync(file, `url,slug\n${rows.join('\n')}\nhttps://example.com/,a-b\n`)
  const remote = { HOPCODE_URL: service.url, HOPCODE_API_KEY: key, DATA_DIR: set.folder.path }
  const sent = await run(`import csv ${file}`, remote)
  expect([sent.code, sent.err]).toEqual([1, ''])
  expect(sent.out).toContain('250  created')
  expect(sent.out).toContain('1  refused: only owners of the service can add aliases')
  const out = join(set.folder.path, 'links.jsonl')
  expect((await run(`export ${out}`, remote)).code).toBe(0)
  expect(readFileSync(out, 'utf8').match(/^\{"code"/gm)).toHaveLength(250)
})

const REFUSED: [args: string, code: number, message: RegExp][] = [
  ['import auto FILE', 1, /no service uses/],
  ['import nothing FILE', 1, /unknown format nothing/],
  ['import auto /nowhere/file', 1, /does not exist/],
  ['import nowhere.csv', 1, /nowhere\.csv does not exist/],
  ['import /', 1, /not a regular file/],
  ['import csv', 1, /name a file after the format csv/],
  ['import auto FILE --passwords never', 2, /passwords/],
  ['export -', 1, /no service uses/],
]
test.each(REFUSED)('hopcode %s says what is wrong', async (args, code, message) => {
  using set = await setUp()
  const result = await set.run(args.replace('FILE', set.file))
  expect([result.code, result.out]).toEqual([code, ''])
  expect(result.err).toMatch(message)
})

const NO_EXPORTS: [name: string, content: string | Uint8Array][] = [
  ['notes.txt', 'Dear reader,\nthis is no export.\n'],
  ['empty.csv', ''],
  ['head.csv', 'Short URL,Long URL\n'],
  ['picture.png', new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])],
  ['data.json', '[{"name":"a","size":1}]'],
  ['other.sql', 'CREATE TABLE cats (id int);\nINSERT INTO cats VALUES (1);\n'],
]
test('a file that is no export is refused with its name and the formats', async () => {
  using set = await setUp()
  await using _service = await Service.start(set.env)
  for (const [name, content] of NO_EXPORTS) {
    const file = join(set.folder.path, name)
    writeFileSync(file, content)
    const { code, out, err } = await set.run(`import ${file} --account ${EMAIL}`)
    expect([name, code, out]).toEqual([name, 1, ''])
    expect(err).toContain(name)
    expect(err).toContain('YOURLS')
  }
  const bad = join(set.folder.path, 'bad.csv')
  writeFileSync(bad, 'keyword,url\na,\nb,\nc,https://x.example\n')
  const { code, err } = await set.run(`import ${bad} --account ${EMAIL}`)
  expect([code, err]).toEqual([1, expect.stringContaining('read as YOURLS')])
})

test('hits and losses are those of the links that were created', async () => {
  using set = await setUp()
  const { env, run, folder } = set
  await using _service = await Service.start(env)
  const file = join(folder.path, 'twice.csv')
  const rows = [
    'go.test/menu-1,https://example.com/1,7,no,',
    'go.test/menu-1,https://example.com/2,7,no,',
    'go.test/api/status,https://example.com/3,100,yes,',
    'go.test/bad-url,mailto:a@b.example,1000,yes,',
    'go.test/menu-2,https://example.com/5,30,yes,open sesame',
  ]
  writeFileSync(file, `Short URL,Long URL,Clicks,Cloaking,Password\n${rows.join('\n')}\n`)
  const imports = async (options: string) => {
    const { out } = await run(`import ${file} --account ${EMAIL} --json ${options}`.trim())
    const { hits, not_supported } = JSON.parse(out) as Record<string, unknown>
    return { hits, lost: not_supported }
  }
  const skipped = '--passwords skip'
  expect(await imports(`--dry-run ${skipped}`)).toEqual({ hits: 7, lost: {} })
  expect(await imports('--dry-run')).toEqual({ hits: 37, lost: { cloaking: 1 } })
  expect(await imports('--dry-run --without-hits')).toMatchObject({ hits: 0 })
  expect(await imports('')).toEqual({ hits: 37, lost: { cloaking: 1 } })
  expect(await imports('')).toEqual({ hits: 0, lost: {} })
})

test('the ending of a file decides on the format of an export', async () => {
  using set = await setUp()
  await using _service = await Service.start(set.env)
  const exported = async (name: string, options = '') => {
    const file = join(set.folder.path, name)
    expect((await set.run(`export ${file} --account ${EMAIL} ${options}`.trim())).code).toBe(0)
    return readFileSync(file, 'utf8')
  }
  expect(await exported('new.CSV')).toStartWith('Short URL,')
  expect(await exported('new.jsonl')).toStartWith('{')
  expect(await exported('new.txt')).toStartWith('{')
  expect(await exported('other.csv', '--format jsonl')).toStartWith('{')
})
