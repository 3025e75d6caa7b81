import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import {
  binary,
  command,
  makeAccount,
  Service,
  type Settings,
  UNLIMITED,
} from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { testWith } from '../support/tools.ts'
import { AS_NOBODY, giveToNobody } from './lib/nobody.ts'

/** The compiled program: how it starts, is driven and stops. */

/** What a first start prints, up to the link that sets up the owner. */
async function firstWords(env: Record<string, string>): Promise<string> {
  using folder = temporaryFolder()
  const child = Bun.spawn([await binary()], {
    env: { DATA_DIR: folder.path, PORT: '0', ...env },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const decoder = new TextDecoder()
  let words = ''
  for await (const chunk of child.stdout) {
    words += decoder.decode(chunk)
    if (words.includes('/app/setup/')) child.kill('SIGTERM')
  }
  expect(await child.exited).toBe(0)
  return words
}

test('the first start says where it listens, where the API page is, and how to begin', async () => {
  const words = await firstWords({ BASE_URL: 'https://hop.example' })
  expect(words).toMatch(/^Hopcode \d+\.\d+\.\d+ is running\. Press Ctrl\+C to stop\.$/m)
  expect(words).toMatch(/Listens on +http:\/\/0\.0\.0\.0:[1-9]\d+$/m)
  expect(words).toMatch(/Short links +https:\/\/hop\.example$/m)
  expect(words).toContain('https://hop.example/app/setup/')
  expect(words).toContain('https://hop.example/docs')
  expect(words).not.toContain('phones')
})

test('a start on localhost has the command for phones in the network, if there is one', async () => {
  using folder = temporaryFolder()
  const given = {
    DATA_DIR: join(folder.path, "Anna's $HOME data"),
    PORT: String(await freePort()),
    ROOT_URL: 'https://example.com/a&b;c',
    OPERATOR_NAME: '"Größe" `id` \\ *',
    LINK_CACHE_MAX: '',
  }
  const secrets = {
    HOPCODE_API_KEY: 'hop_secret',
    NOT_FOUND_URL: 'https://example.com/?token=secret',
  }
  const words = await firstWords({
    BASE_URL: 'http://localhost:3000',
    HOST: '127.0.0.1',
    ...given,
    ...secrets,
  })
  const all = Object.values(networkInterfaces()).flatMap((some) => some ?? [])
  const other = all.find(({ family, internal }) => family === 'IPv4' && !internal)
  if (!other) {
    expect(words).not.toContain('phones')
    return
  }
  const [line = ''] = /^ +BASE_URL=.*$/m.exec(words) ?? []
  expect(line).toEndWith(` ${await binary()}`)
  expect(words).not.toContain('secret')
  expect(words).toContain('and with NOT_FOUND_URL, HOPCODE_API_KEY as now')
  // A shell reads it: the same settings come out of it.
  const asked = Bun.spawnSync(['sh', '-c', line.replace(/ \S+$/, ' env')], {
    env: { PATH: '/bin:/usr/bin' },
  })
  const found = new Map(
    asked.stdout
      .toString()
      .split('\n')
      .map((one) => one.split(/=(.*)/s) as [string, string]),
  )
  const { LINK_CACHE_MAX: _, ...expected } = given
  const names = ['BASE_URL', 'HOST', 'LINK_CACHE_MAX', ...Object.keys(expected)]
  expect(Object.fromEntries(names.map((name) => [name, found.get(name)]))).toEqual({
    ...expected,
    BASE_URL: `http://${other.address}:${given.PORT}`,
    HOST: undefined,
    LINK_CACHE_MAX: undefined,
  })
})

test('it starts, shortens, is followed, counts and stops', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path, HIT_FLUSH_MS: '60000' }
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  const code = await service.shorten(key, 'https://example.com/start')
  const answer = await service.fetch(`/${code}`)
  expect([answer.status, answer.headers.get('location')]).toEqual([
    302,
    'https://example.com/start',
  ])
  expect(await service.hitCount(code)).toBe(1)
  expect(await service.end('SIGTERM')).toBe(0)
  // Everything is in the database file itself: a copy of it after a stop is whole.
  expect(statSync(join(folder.path, 'hopcode.db-wal'), { throwIfNoEntry: false })?.size ?? 0).toBe(
    0,
  )
  using db = new Database(join(folder.path, 'hopcode.db'), { readonly: true })
  expect(db.query('SELECT redirects FROM hit_totals').get()).toEqual({ redirects: 1 })
})

test('the query of a page arrives, although the program is minified', async () => {
  using folder = temporaryFolder()
  await using service = await Service.start({ DATA_DIR: folder.path })
  const page = await fetch(`${service.url}/app/sign-in?next=/app/keys`)
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('value="/app/keys"')
})

test('each page and form of the dashboard works, although the program is minified', async () => {
  using folder = temporaryFolder()
  const env = { ...UNLIMITED, SIGNUP: 'open', DATA_DIR: folder.path }
  await using service = await Service.start(env)
  const send = await signedInOwner(service, env)
  const csrf = await csrfOf(await send('/app/keys'))
  const post = (path: string, fields: Record<string, string>) =>
    send(path, { method: 'POST', body: new URLSearchParams({ csrf, ...fields }) })
  const created = await post('/app/links', { url: 'https://example.com/', code: 'SPRING26' })
  expect(created.status).toBe(200)

  const statuses: Record<string, number> = {}
  for (const path of OWNER_PAGES) statuses[path] = (await send(path)).status
  expect(statuses).toEqual(Object.fromEntries(OWNER_PAGES.map((path) => [path, 200])))
  const found = await (await send('/app/service/accounts?search=nobody-has-this')).text()
  expect(found).toContain('nobody-has-this')

  await post('/app/links/SPRING26/settings', { was_public: 'off', public: '1' })
  const shared = await (await send('/app/links/SPRING26/settings')).text()
  const address = /\/app\/shared\/[\w-]+/.exec(shared)?.[0] ?? ''
  expect((await send(address)).status).toBe(200)

  const forms = [
    ['/app/links/SPRING26/settings', { url: 'https://example.com/new' }, 303],
    ['/app/links/SPRING26/settings', { url: 'javascript:alert(1)' }, 422],
    ['/app/keys/new', { name: 'Website', scope: 'read' }, 200],
    ['/app/service/accounts/1/plan', { plan: 'pro' }, 303],
    ['/app/service/links/SPRING26/disable', { reason: '' }, 422],
    ['/app/links/SPRING26/delete', {}, 303],
  ] as const
  for (const [path, fields, status] of forms) {
    expect([path, (await post(path, fields)).status]).toEqual([path, status])
  }
})

const OWNER_PAGES = [
  '/app/sign-up',
  '/app/links?q=SPRING26&sort=hits&page=1',
  '/app/links/code?code=SPRING27',
  '/app/links/SPRING26?done=changed',
  '/app/links/SPRING26/delete',
  '/app/links/SPRING26/qr.png?size=200',
  '/app/links/SPRING26/qr.svg',
  '/app/links/SPRING26/hits.csv',
  '/app/links/SPRING26/visits?by=country',
  '/app/links/SPRING26/visits.csv?by=country',
  '/app/links/bulk',
  '/app/links/export.csv',
  '/app/links/import',
  '/app/analytics?range=30d',
  '/app/analytics?from=2026-01-01&to=2026-01-31',
  '/app/analytics.csv',
  '/app/analytics/visits?by=country',
  '/app/analytics/visits.csv?by=country',
  '/app/qr',
  '/app/account',
  '/app/account/domains',
  '/app/account/security',
  '/app/account/delete',
  '/app/account/two-factor',
  '/app/service',
  '/app/service/settings',
  '/app/service/accounts/new',
  '/app/service/accounts?search=owner&page=1',
  '/app/service/accounts/1',
  '/app/service/accounts/1/disable',
  '/app/service/links?page=1',
  '/app/service/links/SPRING26',
]

/** Sets up the owner. Returns a function that sends requests with the cookie of that session. */
async function signedInOwner(service: Service, env: Settings) {
  const { out } = await command(['account', 'setup-link'], env)
  const path = new URL(/http\S+/.exec(out)?.[0] ?? '').pathname
  const form = await service.fetch(path)
  const csrf = await csrfOf(form)
  const joined = await service.fetch(path, {
    method: 'POST',
    headers: { cookie: cookiesOf(form) },
    body: new URLSearchParams({ csrf, email: 'owner@example.com', password: 'a long password 1' }),
  })
  const cookie = cookiesOf(joined)
  return (path: string, init: RequestInit = {}) =>
    service.fetch(path, { ...init, headers: { cookie } })
}

const csrfOf = async (page: Response): Promise<string> =>
  /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''

const cookiesOf = ({ headers }: Response): string =>
  headers
    .getSetCookie()
    .map((text) => text.split(';', 1)[0])
    .join('; ')

test('it runs from an empty folder as an unprivileged user, and writes in DATA_DIR alone', async () => {
  using folder = temporaryFolder()
  const home = join(folder.path, 'empty')
  const data = join(folder.path, 'data')
  mkdirSync(data)
  giveToNobody(folder.path)
  mkdirSync(home)
  chmodSync(home, 0o555)
  const words = ['env', '-C', home, ...AS_NOBODY]
  await using service = await Service.start({ DATA_DIR: data }, words)
  expect((await service.fetch('/docs')).status).toBe(200)
  expect((await service.fetch('/docs/bundle.js')).status).toBe(200)
  expect((await service.fetch('/favicon.ico')).status).toBe(200)
  expect(await service.end('SIGTERM')).toBe(0)
  expect(readdirSync(home)).toEqual([])
  expect(readdirSync(data)).toContain('hopcode.db')
})

test('a running service honours an account, a rotated key and a maintenance made beside it at once', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await using service = await Service.start(env)
  const key = await makeAccount(env, 'free')
  const list = (key: string) => service.fetch('/api/list', { headers: { 'x-api-key': key } })
  expect((await list(key)).status).toBe(200)

  const rotate = ['key', 'rotate', '--email', 'free@example.com', '--json', '--now']
  const rotated = JSON.parse((await command(rotate, env)).out)
  expect(Object.keys(rotated)).toEqual(['account_id', 'email', 'plan', 'api_key'])
  expect((await list(key)).status).toBe(401)
  expect((await list(rotated.api_key)).status).toBe(200)

  await command(['maintenance', 'on', '--until', '30m'], env)
  expect((await service.fetch('/api/status')).status).toBe(503)
  expect((await command(['maintenance', 'status'], env)).out).toMatch(/^Maintenance until 20/)
  await command(['maintenance', 'off'], env)
  const status = await service.fetch('/api/status')
  expect(status.status).toBe(200)
  const { response_time_ms } = (await status.json()) as { response_time_ms: number }
  // Here, because the clock of other tests has whole milliseconds only.
  expect(Number.isInteger(response_time_ms)).toBe(true)
  expect(await service.end('SIGINT')).toBe(0)
})

testWith('sqlite3')(
  'another program that opens and closes the database beside the service loses no later change',
  async () => {
    using folder = temporaryFolder()
    const env = { DATA_DIR: folder.path }
    const key = await makeAccount(env)
    const codes: string[] = []
    {
      await using service = await Service.start(env)
      for (let i = 1; i <= 3; i++) {
        codes.push(await service.shorten(key, `https://example.com/${i}`))
        // The last connection that closes a database removes its log: sqlite3 must see the service.
        const file = join(folder.path, 'hopcode.db')
        const words = ['sqlite3', file, 'SELECT count(*) FROM links']
        expect(Bun.spawnSync(words).stdout.toString()).toBe(`${i}\n`)
      }
      await service.end('SIGKILL')
    }
    await using next = await Service.start(env)
    const answers = await Promise.all(codes.map((code) => next.fetch(`/${code}`)))
    expect(answers.map(({ status }) => status)).toEqual([302, 302, 302])
  },
)

test('commands print one line of JSON when asked, and say what is wrong otherwise', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const create = ['account', 'create', '--email', 'a@example.com', '--plan', 'pro', '--json']
  const { out, code } = await command(create, env)
  expect(code).toBe(0)
  expect(out.trim()).not.toContain('\n')
  expect(JSON.parse(out)).toEqual({
    account_id: 1,
    email: 'a@example.com',
    plan: 'pro',
    api_key: expect.stringMatching(/^hop_[0-9A-Za-z]{36}$/),
  })
  expect(await command(create, env)).toEqual({
    code: 1,
    out: '',
    err: 'hopcode: a@example.com already has an account.\n',
  })
  const setPlan = ['account', 'set-plan', '--email', 'A@Example.com', '--plan', 'free']
  expect(await command(setPlan, env)).toMatchObject({ code: 0 })
  const [listed] = (await command(['account', 'list', '--json'], env)).out.trim().split('\n')
  expect(JSON.parse(listed ?? '')).toMatchObject({ account_id: 1, plan: 'free', links: 0 })
  const revoke = await command(['key', 'revoke', '--email', 'nobody@example.com'], env)
  expect(revoke).toMatchObject({ code: 1, err: expect.stringContaining('nobody@example.com') })
  expect(await command(['frobnicate'], env)).toMatchObject({ code: 2, out: '' })
  expect((await command(['--version'], env)).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  expect((await command(['--help'], env)).out).toContain('maintenance on')
  expect(await command(['health'], { ...env, PORT: '1' })).toMatchObject({ code: 1 })
})

test('a bad setting, a port in use and a damaged file each end the start with one clear line', async () => {
  using folder = temporaryFolder()
  expect(await command(['serve'], { DATA_DIR: folder.path, PORT: 'http' })).toEqual({
    code: 1,
    out: '',
    err: 'hopcode: Bad setting: PORT must be a whole number from 0 to 65535 (it is “http”)\n',
  })
  using other = temporaryFolder()
  await using service = await Service.start({ DATA_DIR: folder.path })
  const port = new URL(service.url).port
  const taken = await command(['serve'], { DATA_DIR: other.path, HOST: '127.0.0.1', PORT: port })
  expect(taken).toMatchObject({ code: 1, err: expect.stringContaining(`127.0.0.1:${port}`) })
  using damaged = temporaryFolder()
  writeFileSync(join(damaged.path, 'hopcode.db'), 'not a database at all')
  const refused = await command(['serve'], { DATA_DIR: damaged.path })
  expect(refused.code).toBe(1)
  expect(refused.err).toContain(`${damaged.path}/hopcode.db is damaged`)
})

test('of services that start at the same time on one port, one listens and the others end', async () => {
  const program = await binary()
  for (let round = 0; round < 3; round++) {
    using folder = temporaryFolder()
    const PORT = String(freePort())
    const services = ['0.0.0.0', '127.0.0.1', '127.0.0.1', '127.0.0.1'].map((HOST, i) =>
      Bun.spawn([program, 'serve'], {
        env: { DATA_DIR: join(folder.path, String(i)), HOST, PORT },
        stdout: 'ignore',
        stderr: 'pipe',
      }),
    )
    const ended = () => services.filter(({ exitCode }) => exitCode !== null)
    await eventually('all but one have ended', () => ended().length >= 3)
    await eventually('one answers', async () => {
      return (await fetch(`http://127.0.0.1:${PORT}/-/live`).catch(() => undefined))?.ok === true
    })
    expect(ended().map(({ exitCode }) => exitCode)).toEqual([1, 1, 1])
    for (const { stderr } of ended()) expect(await stderr.text()).toContain('cannot listen on')
    for (const service of services) service.kill('SIGKILL')
    await Promise.all(services.map(({ exited }) => exited))
  }
})

test('a second service on one data folder is refused, naming the first; a killed one leaves no lock', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path, BASE_URL: 'http://hop.test' }
  await using service = await Service.start(env)
  expect(await command(['serve'], { ...env, HOST: '127.0.0.1', PORT: '0' })).toEqual({
    code: 1,
    out: '',
    err:
      `hopcode: ${folder.path} is served by process ${service.pid} already: ` +
      'stop it, or choose another DATA_DIR.\n',
  })
  expect((await service.fetch('/api/status')).status).toBe(200)
  expect(await service.end('SIGKILL')).toBe('SIGKILL')
  await using next = await Service.start(env)
  expect((await next.fetch('/api/status')).status).toBe(200)
})
