import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service } from '../support/binary.ts'
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
  expect((await command(['links', 'nosuch'], remote)).out).toBe('No links.\n')
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
