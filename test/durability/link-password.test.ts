import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binary, command, makeAccount, Service, type Settings } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** Passwords of links with the compiled binary: the command, and a kill after the answer. */

const WORD = 'open sesame'

const authorization = `Basic ${Buffer.from(`:${WORD}`).toString('base64')}`

/** Without and with the password. */
const statusesOf = async (service: Service, code: string) => [
  (await service.fetch(`/${code}`)).status,
  (await service.fetch(`/${code}`, { headers: { authorization } })).status,
]

test('hopcode link password reads one line of standard input, or a terminal without echo', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL: 'https://hop.test' }
  const apiKey = await makeAccount(env)
  await using service = await Service.start(env)
  const remote: Settings = {
    HOPCODE_URL: service.url,
    HOPCODE_API_KEY: apiKey,
    DATA_DIR: join(folder.path, 'none'),
  }
  const code = await service.shorten(apiKey, 'https://example.com/locked')
  const program = await binary()
  const run = async (input: string | Uint8Array, ...more: string[]) => {
    const sent = join(folder.path, 'input')
    writeFileSync(sent, input)
    const wrap = ['sh', '-c', 'exec "$@" < "$0"', sent]
    return command(['link', 'password', code, ...more], remote, wrap)
  }
  expect(await run(`${WORD}\n`)).toEqual({
    code: 0,
    out: `https://hop.test/${code} asks for its password.\n`,
    err: '',
  })
  expect(await statusesOf(service, code)).toEqual([401, 302])
  for (const [input, error] of [
    ['', 'no password was entered'],
    ['\n', 'no password was entered'],
    ['two\nlines\n', 'one line'],
    ['12345', 'must have 6 to 128 characters'],
    [Buffer.from('gr\xf6\xdfe!!\n', 'latin1'), 'standard input is not UTF-8'],
    [Buffer.from('\ufefföffne dich', 'utf16le'), 'standard input is not UTF-8'],
  ] as const) {
    expect(await run(input)).toMatchObject({ code: 1, err: expect.stringContaining(error) })
  }
  // Else other users of the machine would see it.
  expect((await run('', WORD)).code).toBe(2)
  expect(await statusesOf(service, code)).toEqual([401, 302])
  expect(await run('', '--remove')).toMatchObject({ code: 0 })
  expect((await service.fetch(`/${code}`)).status).toBe(302)

  const terminal = ['script', '-qec', `${program} link password ${code}`, '/dev/null']
  const typed = Bun.spawn(terminal, {
    env: { ...process.env, ...remote },
    stdin: 'pipe',
    stdout: 'pipe',
  })
  const shown: string[] = []
  const decoder = new TextDecoder()
  for await (const bytes of typed.stdout) {
    shown.push(decoder.decode(bytes))
    if (/(Password.*|again):\s*$/.test(shown.at(-1) ?? '')) {
      typed.stdin.write(`${WORD}\r`)
      typed.stdin.flush()
    }
  }
  expect(await typed.exited).toBe(0)
  expect(shown.join('')).toContain('asks for its password')
  expect(shown.join('')).not.toContain(WORD)
  expect(await statusesOf(service, code)).toEqual([401, 302])
})

test('a link is protected after kill -9, once the change was answered', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL: 'https://hop.test' }
  const apiKey = await makeAccount(env)
  const before = await Service.start(env)
  const code = await before.shorten(apiKey, 'https://example.com/locked')
  const changed = await before.fetch(`/api/links/${code}`, {
    method: 'PATCH',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ password: WORD }),
  })
  expect(changed.status).toBe(200)
  expect(await before.end('SIGKILL')).toBe('SIGKILL')
  await using after = await Service.start(env)
  expect(await statusesOf(after, code)).toEqual([401, 302])
})
