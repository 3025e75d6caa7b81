import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { accountCommands } from '../../src/cli/accounts.ts'
import { type TestApp, testApp } from '../../test/support/app.ts'
import { UNLIMITED } from '../../test/support/binary.ts'
import { CERTIFIED_NAME, createCertificate } from '../../test/support/certificates.ts'
import { testWith } from '../../test/support/tools.ts'
import { TemporaryFolder } from './leftovers.ts'
import { ownAddresses } from './own-address.ts'

/** `npm run bench -- --url` against a service on loopback, through a proxy that has faults. */

const RUN = join(import.meta.dir, '../run.ts')
const BRIEF = '--seconds 0.2 --rounds 1 --links 40 --connections 4'.split(' ')

interface Faults {
  env?: Record<string, string>
  /** In place of the service's response. */
  answer?: (path: string, upstream: () => Promise<Response>) => Response | Promise<Response>
  /** Files of a certificate. */
  tls?: { certificate: string; key: string }
}

/** A service without limits, behind a proxy. */
async function deploy({ answer = (_, upstream) => upstream(), tls, env = {} }: Faults = {}) {
  const app = await testApp({ env: { ...UNLIMITED, ...env } })
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls && {
      tls: { cert: readFileSync(tls.certificate), key: readFileSync(tls.key) },
    }),
    fetch: (request) => {
      const { pathname, search } = new URL(request.url)
      const upstream = () =>
        fetch(app.url + pathname + search, {
          method: request.method,
          headers: request.headers,
          redirect: 'manual',
          body: request.body,
        })
      return answer(pathname, upstream)
    },
  })
  const close = async () => {
    await proxy.stop(true)
    await app[Symbol.asyncDispose]()
  }
  const key = app.key('enterprise')
  return { app, port: proxy.port ?? 0, key, [Symbol.asyncDispose]: close }
}

const linksOf = async (app: TestApp): Promise<unknown> =>
  (await app.call('GET', '/api/list', { key: 'enterprise' })).body.total

/** Runs the bench to its end. `at`: called with each line of progress. */
async function bench(url: string, words: string[], at?: (line: string, pid: number) => void) {
  const child = Bun.spawn([process.execPath, RUN, '--url', url, ...BRIEF, ...words], {
    env: { ...process.env, HOPCODE_API_KEY: '' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const lines: string[] = []
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const bytes of child.stderr) {
      const text = decoder.decode(bytes, { stream: true })
      lines.push(text)
      for (const line of text.split('\n')) at?.(line, child.pid)
    }
  }
  const [out, code] = await Promise.all([child.stdout.text(), child.exited, read()])
  return { code, out, err: lines.join('') }
}

const atPort = ({ port }: { port: number }) => `http://127.0.0.1:${port}`

test('a deployment is measured, its counts are right, and nothing is left of the run', async () => {
  await using it = await deploy()
  const { code, out, err } = await bench(atPort(it), ['--key', it.key])
  expect([code, err]).toEqual([0, expect.stringContaining('rate limit: none')])
  for (const kind of ['kept', 'one connection', 'cold', 'open loop']) expect(out).toContain(kind)
  expect(out).toMatch(/counted = followed: \d{2,} redirects/)
  expect(await linksOf(it.app)).toBe(0)
  const written = /Written: (.*\.json)/.exec(err)?.[1] ?? ''
  const saved = readFileSync(written, 'utf8')
  expect(JSON.parse(saved)).toMatchObject({ reports: [{ scenario: 'url' }], failures: [] })
  expect(saved).not.toContain(it.key)
}, 60_000)

/** Faults of the `n`-th redirect. `says`: what the bench says before it ends with 1. */
const FAULTS = [
  {
    name: 'a wrong Location',
    says: /answered 302 https:\/\/example\.com\/else/,
    at: (n: number, response: Response) => {
      if (n === 7) response.headers.set('location', 'https://example.com/else')
      return response
    },
  },
  {
    name: '429 in the middle',
    says: /refused by a rate limit/,
    at: (n: number, response: Response) => (n < 60 ? response : new Response('', { status: 429 })),
  },
]
test.each(FAULTS)(
  '$name ends a bench with 1, and its links are deleted',
  async ({ at, says }) => {
    let redirects = 0
    await using it = await deploy({
      answer: async (_, upstream) => {
        const response = await upstream()
        return response.status === 302 ? at(++redirects, response) : response
      },
    })
    const { code, err } = await bench(atPort(it), ['--key', it.key])
    expect([code, err]).toEqual([1, expect.stringMatching(says)])
    expect(await linksOf(it.app)).toBe(0)
  },
  60_000,
)

test('a service that does not count 1 of 1,000 redirects is found out', async () => {
  let redirects = 0
  const known = new Map<string, string>()
  await using it = await deploy({
    answer: async (path, upstream) => {
      const location = known.get(path)
      // Answered without the service, which therefore does not count it.
      if (location && ++redirects % 1000 === 100) {
        return new Response('', { status: 302, headers: { location } })
      }
      const response = await upstream()
      if (response.status === 302) known.set(path, response.headers.get('location') ?? '')
      return response
    },
  })
  const { code, err } = await bench(atPort(it), ['--key', it.key])
  expect([code, err]).toEqual([1, expect.stringMatching(/do not count what was followed/)])
  expect(await linksOf(it.app)).toBe(0)
}, 60_000)

test.each(['creating', 'round 1 of 1: kept'])(
  'Ctrl-C deletes the links, also while: %s',
  async (at) => {
    await using it = await deploy()
    let isSent = false
    const { code, err } = await bench(atPort(it), ['--key', it.key], (line, pid) => {
      if (isSent || !line.includes(at)) return
      isSent = true
      process.kill(pid, 'SIGINT')
      // As from a terminal and from npm.
      process.kill(pid, 'SIGINT')
    })
    expect(isSent).toBe(true)
    expect([code, err]).toEqual([1, expect.stringContaining('deleting')])
    expect(await linksOf(it.app)).toBe(0)
  },
  60_000,
)

test('a rate limit is named, and the load stays below it', async () => {
  await using it = await deploy({ env: { ANONYMOUS_REDIRECTS_PER_MINUTE: '300' } })
  const { code, err } = await bench(atPort(it), ['--key', it.key])
  expect([code, err]).toEqual([0, expect.stringContaining('rate limit: 300 requests a minute')])
}, 60_000)

testWith('openssl')(
  'a certificate of a private authority is accepted with --ca only',
  async () => {
    using folder = new TemporaryFolder()
    const { certificate, key, authority } = createCertificate(folder.path)
    await using it = await deploy({ tls: { certificate, key } })
    const url = `https://${CERTIFIED_NAME}:${it.port}`
    const refused = await bench(url, ['--key', it.key])
    expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/certificate/)])
    const { code, out, err } = await bench(url, ['--key', it.key, '--ca', authority])
    expect([code, err]).toEqual([0, expect.stringMatching(/TLS handshake \d+\.\d\d ms/)])
    expect(out).toContain('one connection, resumed')
    expect(await linksOf(it.app)).toBe(0)
  },
  60_000,
)

test('a token is checked by the service that printed it', async () => {
  await using it = await deploy()
  const token = await accountCommands.benchToken(it.app.administration, {
    email: 'enterprise@example.com',
  })
  const brief = ['--key', it.key, '--links', '4']
  expect(await bench(atPort(it), [...brief, '--token', token])).toMatchObject({ code: 0 })
  const wrong = await bench(atPort(it), [...brief, '--token', token.replace(/.$/, '_')])
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/does not know this token/)])
}, 60_000)

test('a public address is refused without a token before any connection', async () => {
  const { code, err } = await bench('http://203.0.114.1', ['--key', 'hop_x'])
  expect([code, err]).toEqual([1, expect.stringMatching(/public address.*bench-token/)])
})

const names = [
  { name: 'loopback', url: 'http://go.example', found: ['127.0.0.1', '::1'], isPublic: false },
  {
    name: 'private ones',
    url: 'http://go.example',
    found: ['10.1.2.3', 'fd00::1'],
    isPublic: false,
  },
  { name: 'one private, one public', url: 'http://go.example', found: ['10.1.2.3', '203.0.114.1'] },
  { name: 'a mapped public one', url: 'http://go.example', found: ['::ffff:203.0.114.1'] },
  { name: 'link-local, where clouds answer', url: 'http://go.example', found: ['169.254.169.254'] },
  { name: 'public, token, no TLS', url: 'http://go.example', found: ['203.0.114.1'], token: true },
  {
    name: 'public, token, TLS',
    url: 'https://go.example',
    found: ['203.0.114.1'],
    token: true,
    isPublic: true,
  },
]
test.each(names)(
  'a host is loaded only if it is one’s own: $name',
  async ({ url, found, token, isPublic }) => {
    const checked = ownAddresses(new URL(url), token ?? false, async () => found)
    if (isPublic === undefined) await expect(checked).rejects.toThrow(Error)
    else expect(await checked).toEqual({ addresses: found, isPublic })
  },
)
