import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binary, command, makeAccount, Service } from '../support/binary.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { temporaryFolder } from '../support/folder.ts'

/** The commands that call a service, from a machine that has no data folder. */
test('hopcode shorten, links and qr use the service at HOPCODE_URL', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL: 'https://hop.test' }
  const apiKey = await makeAccount(env)
  await using service = await Service.start(env)
  const remote = {
    HOPCODE_URL: service.url,
    HOPCODE_API_KEY: apiKey,
    DATA_DIR: join(folder.path, 'none'),
  }

  const created = await command(['shorten', 'example.com/flyer'], remote)
  expect(created).toMatchObject({ code: 0, err: '' })
  const [shortUrl = '', passcode] = created.out.trim().split('\n')
  expect(shortUrl).toMatch(/^https:\/\/hop\.test\/[A-Z\d]{8}$/)
  expect(passcode).toMatch(/: [A-Z\d]{24}$/)
  const again = await command(['shorten', 'https://example.com/flyer', '--json'], remote)
  expect(JSON.parse(again.out)).toMatchObject({ short_url: shortUrl, reused: true })

  await command(['shorten', 'example.com:8080/other'], remote)
  const found = await command(['links', 'FLYER'], remote)
  expect(found.out).toBe(`${shortUrl}  0 hits  https://example.com/flyer\n`)
  const all = await command(['links', '--json'], remote)
  expect(
    all.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).url),
  ).toEqual(['https://example.com:8080/other', 'https://example.com/flyer'])

  const out = join(folder.path, 'code.png')
  const code = shortUrl.slice(-8)
  const saved = `Saved ${out}\n`
  expect(await command(['qr', code, '--out', out], remote)).toEqual({
    code: 0,
    out: saved,
    err: '',
  })
  expect((await decodeQr(readFileSync(out))).text).toBe(shortUrl)
  const exists = await command(['qr', code, '--out', out], remote)
  expect([exists.code, exists.err]).toEqual([1, expect.stringContaining('cannot be written')])
  const svg = await command(['qr', code, '--out', join(folder.path, 'code.svg')], remote)
  expect(svg.code).toBe(0)
  expect(readFileSync(join(folder.path, 'code.svg'), 'utf8')).toStartWith('<svg')
})

test('hopcode shorten prints the QR code on a terminal and with --qr, and else not', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL: 'https://hop.test' }
  const apiKey = await makeAccount(env)
  await using service = await Service.start(env)
  const remote = { HOPCODE_URL: service.url, HOPCODE_API_KEY: apiKey, TERM: 'xterm' }
  const shorten = (...options: string[]) =>
    command(['shorten', 'https://example.com/flyer', ...options], remote)
  const short = (await shorten()).out.split('\n')[0] ?? ''
  const shown = await shorten('--qr')
  expect(shown).toMatchObject({ code: 0, err: '' })
  expect(await textOfBlocks(shown.out)).toBe(short)
  expect(shown.out).toEndWith(`\n${short}\n`)
  expect(JSON.parse((await shorten('--json', '--qr')).out)).toMatchObject({ short_url: short })

  const onTerminal = (columns: number, options = '') => {
    const line = `stty cols ${columns}; ${binaryPath} shorten https://example.com/flyer ${options}`
    const { stdout } = Bun.spawnSync(['script', '-qec', line, '/dev/null'], {
      env: { ...remote, PATH: process.env.PATH },
      stdin: 'ignore',
    })
    return stdout.toString().replaceAll('\r', '')
  }
  const binaryPath = await binary()
  expect(await textOfBlocks(onTerminal(80))).toBe(short)
  for (const plain of [onTerminal(80, '--no-qr'), onTerminal(30), (await shorten()).out]) {
    expect(plain).toBe(`${short}\n`)
  }
})

const BLACK_ON_WHITE = '\x1b[38;5;16;48;5;231m'
const RESET = '\x1b[0m'

/** The text of the QR code in lines of half blocks on a white ground. */
async function textOfBlocks(out: string): Promise<string> {
  const rows = out.split('\n').flatMap((line) => {
    if (!line.startsWith(BLACK_ON_WHITE)) return []
    const blocks = line.slice(BLACK_ON_WHITE.length, -RESET.length)
    const row = (dark: string) => [...blocks].map((one) => (dark.includes(one) ? 1 : 0))
    return [row('▀█'), row('▄█')]
  })
  const size = rows[0]?.length ?? 0
  const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : '')))
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" width="${size}">`,
    `<path fill="#ffffff" d="M0 0h${size}v${size}H0z"/>`,
    `<path fill="#000000" d="${path.join('')}"/></svg>\n`,
  ].join('')
  return (await decodeQr(Buffer.from(svg), 'image/svg+xml')).text
}

test('hopcode link destinations prints the destinations of a link, and sets them', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL: 'https://hop.test' }
  const apiKey = await makeAccount(env)
  await using service = await Service.start(env)
  const remote = {
    HOPCODE_URL: service.url,
    HOPCODE_API_KEY: apiKey,
    DATA_DIR: join(folder.path, 'none'),
  }
  const created = await command(['shorten', 'example.com/flyer', '--json'], remote)
  const { code } = JSON.parse(created.out) as { code: string }
  const destinations = [{ when: { os: ['ios'] }, url: 'https://example.com/ios' }]
  const file = join(folder.path, 'list.json')
  const run = async (...more: string[]) => {
    const done = await command(['link', 'destinations', code, ...more], remote)
    return { ...done, list: done.code === 0 && JSON.parse(done.out) }
  }
  expect(await run()).toMatchObject({ code: 0, list: [] })
  writeFileSync(file, JSON.stringify(destinations))
  expect(await run(file)).toMatchObject({ code: 0, list: destinations })
  for (const [text, error] of [
    ['', 'must be JSON'],
    ['{}', 'must be a list'],
    ['[{"when":{},"url":"https://example.com/"}]', 'destinations[0].when: must have a condition'],
    [
      Buffer.from('[{"when":{"query":{"a":"\xfc"}},"url":"https://example.com/"}]', 'latin1'),
      'list.json is not UTF-8',
    ],
  ] as const) {
    writeFileSync(file, text)
    expect(await run(file)).toMatchObject({ code: 1, err: expect.stringContaining(error) })
  }
  expect(await run(join(folder.path, 'none.json'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('cannot be read'),
  })
  expect(await run()).toMatchObject({ code: 0, list: destinations })

  const words = ['link', 'destinations', code, '-']
  const piped = (text: string) => command(words, remote, [], undefined, text)
  const others = [...destinations, { when: { os: ['android'] }, url: 'https://example.com/a' }]
  const set = await piped(JSON.stringify(others))
  expect([set.code, JSON.parse(set.out)]).toEqual([0, others])
  // A pipe whose program failed.
  expect(await piped('')).toMatchObject({ code: 1, err: expect.stringContaining('must be JSON') })
  expect(await run()).toMatchObject({ code: 0, list: others })
  expect(await piped('[]')).toMatchObject({ code: 0, out: '[]\n' })
})

test('hopcode links and qr find a link by code, alias, short URL and title', async () => {
  using folder = temporaryFolder()
  const env = {
    DATA_DIR: join(folder.path, 'data'),
    BASE_URL: 'https://hop.test',
    IMPORT_ALIASES: 'all',
  }
  const apiKey = await makeAccount(env)
  await using service = await Service.start(env)
  const DATA_DIR = join(folder.path, 'none')
  const remote = { HOPCODE_URL: service.url, HOPCODE_API_KEY: apiKey, DATA_DIR }
  const none = await command(['links'], remote)
  expect(none).toEqual({ code: 0, out: 'No links.\n', err: '' })
  const rows = [
    'Short URL,Long URL,Title',
    'https://old.test/POSTER26,https://example.com/1,Été in Rome',
    'https://old.test/sommer-fest,https://example.com/2,Fête',
    'https://old.test/WINTER26,https://example.com/3,Winter in Rome',
  ]
  const file = join(folder.path, 'links.csv')
  writeFileSync(file, `${rows.join('\n')}\n`)
  expect((await command(['import', file], remote)).code).toBe(0)

  const aliased = 'https://hop.test/sommer-fest  0 hits  Fête  https://example.com/2\n'
  const poster = 'https://hop.test/POSTER26  0 hits  Été in Rome  https://example.com/1\n'
  const both = [
    'https://hop.test/WINTER26  0 hits  Winter in Rome  https://example.com/3\n',
    'https://hop.test/POSTER26  0 hits  Été in Rome     https://example.com/1\n',
  ]
  const FOUND = [
    ['poster26', poster],
    ['https://hop.test/poster26', poster],
    ['sommer-fest', aliased],
    ['hop.test/sommer-fest', aliased],
    ['fête', aliased],
    ['fete', aliased],
    ['ete rome', poster],
    ['ÉTÉ in', poster],
    ['in rome', both.join('')],
  ] as const
  for (const [text, out] of FOUND) {
    expect([text, await command(['links', text], remote)]).toEqual([
      text,
      { code: 0, out, err: '' },
    ])
  }
  const json = await command(['links', 'fête', '--json'], remote)
  expect(JSON.parse(json.out)).toMatchObject({ display_url: 'https://hop.test/sommer-fest' })
  const all = await command(['links'], remote)
  expect({ ...all, out: all.out.split('\n') }).toEqual({
    code: 0,
    out: [
      'https://hop.test/WINTER26     0 hits  Winter in Rome  https://example.com/3',
      'https://hop.test/sommer-fest  0 hits  Fête            https://example.com/2',
      'https://hop.test/POSTER26     0 hits  Été in Rome     https://example.com/1',
      '',
    ],
    err: '',
  })

  const IMAGES = [
    ['poster26', 'POSTER26'],
    ['https://hop.test/POSTER26', 'POSTER26'],
    ['winter in', 'WINTER26'],
    ['ete in', 'POSTER26'],
    ['sommer-fest', 'sommer-fest'],
    ['https://hop.test/sommer-fest', 'sommer-fest'],
    ['fête', 'sommer-fest'],
  ] as const
  for (const [at, [text, path]] of IMAGES.entries()) {
    const out = join(folder.path, `${at}.png`)
    expect(await command(['qr', text, '--out', out], remote)).toMatchObject({ code: 0, err: '' })
    expect((await decodeQr(readFileSync(out))).text).toBe(`https://hop.test/${path}`)
  }
  const described = await command(
    ['qr', 'fête', '--json', '--out', join(folder.path, 'a.svg')],
    remote,
  )
  expect(JSON.parse(described.out)).toMatchObject({ format: 'svg', code: expect.any(String) })
  // The image of a code is the one that the service gives.
  const image = await fetch(`${service.url}/api/qr/POSTER26`)
  expect(readFileSync(join(folder.path, '0.png'))).toEqual(Buffer.from(await image.bytes()))

  const MISSED = [
    ['links', 'nosuch'],
    ['links', 'nosuch', '--json'],
    ['links', '..'],
    ['qr', 'nosuch'],
    ['qr', 'NOSUCH26'],
    ['qr', '..'],
    ['qr', '   '],
  ]
  for (const args of MISSED) {
    const { code, out, err } = await command(args, remote)
    expect([args, code, out]).toEqual([args, 1, ''])
    expect(err).toContain(`“${args[1]}”`)
  }
  const several = await command(['qr', 'in Rome'], remote)
  expect([several.code, several.err]).toEqual([
    1,
    expect.stringContaining('/WINTER26, https://hop.test/POSTER26'),
  ])

  const anonymous = { HOPCODE_URL: service.url, DATA_DIR }
  const out = join(folder.path, 'anonymous.png')
  const saved = await command(['qr', 'hop.test/poster26', '--out', out], anonymous)
  expect([saved.code, saved.err]).toEqual([0, ''])
  const alias = await command(['qr', 'sommer-fest'], anonymous)
  expect([alias.code, alias.err]).toEqual([1, expect.stringContaining('HOPCODE_API_KEY')])
})

const failures = [
  { args: ['shorten', 'example.com'], env: {}, err: 'set HOPCODE_API_KEY' },
  {
    args: ['links'],
    env: { HOPCODE_API_KEY: 'hop_wrong' },
    err: 'hopcode: Invalid or missing API key\n',
  },
  { args: ['qr', 'NOSUCH26', '--out', '-'], env: {}, err: 'hopcode: Code not found: NOSUCH26\n' },
]
test('a call that is refused is one line and exit code 1', async () => {
  using folder = temporaryFolder()
  await using service = await Service.start({ DATA_DIR: folder.path })
  for (const { args, env, err } of failures) {
    const failed = await command(args, { HOPCODE_URL: service.url, ...env })
    expect([args[0], failed.code, failed.out]).toEqual([args[0], 1, ''])
    expect(failed.err).toContain(err)
    expect(failed.err.trim().split('\n')).toHaveLength(1)
  }
})
