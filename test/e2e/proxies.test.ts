import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { BROWSER_MS, launchBrowser } from '../support/browser.ts'
import { OWNER, PASSWORD } from '../support/dashboard.ts'
import { appWithDomains, GO, L } from '../support/domains.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { testWith } from '../support/tools.ts'

/** The proxy configurations that we provide, in front of the service. */

const PROVIDED = join(import.meta.dir, '../../docs/operations/nginx.conf')
const CERTIFICATE = /^ {4}ssl_certificate(_key)? .*\n/gm

/** nginx with the provided configuration, without TLS, in front of a service. */
class Nginx implements AsyncDisposable {
  readonly url: string
  readonly #folder: string
  readonly #child: Bun.Subprocess

  private constructor(url: string, folder: string, child: Bun.Subprocess) {
    this.url = url
    this.#folder = folder
    this.#child = child
  }

  /** `service`: where it listens. Files are written to `folder`. Throws without nginx. */
  static async start(service: string, folder: string, provided?: string): Promise<Nginx> {
    const port = freePort()
    const text = provided ?? readFileSync(PROVIDED, 'utf8')
    const changed = text
      .replace('server 127.0.0.1:3000;', `server ${new URL(service).host};`)
      .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
      .replace('    listen [::]:443 ssl http2;\n', '')
      .replace(CERTIFICATE, '')
    writeFileSync(join(folder, 'hopcode.conf'), changed)
    writeFileSync(join(folder, 'nginx.conf'), mainConfiguration(folder))
    const words = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')]
    const child = Bun.spawn([...words, '-e', join(folder, 'error.log')], {
      stdio: ['ignore', 2, 2],
    })
    const nginx = new Nginx(`http://127.0.0.1:${port}`, folder, child)
    await eventually('nginx answers', async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${nginx.logs}`)
      return (await fetch(`${nginx.url}/-/ready`).catch(() => undefined))?.ok === true
    })
    return nginx
  }

  /** Both logs, as they are now: nginx writes each line when its answer is sent. */
  get logs(): string {
    const read = (name: string) => readFileSync(join(this.#folder, name), 'utf8')
    return read('access.log') + read('error.log')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#child.exited
  }
}

const mainConfiguration = (folder: string): string => `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
events { worker_connections 256; }
http {
  access_log ${folder}/access.log combined;
  error_log ${folder}/error.log info;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n  ')}
  include ${folder}/hopcode.conf;
}
`

const OPERATIONS = join(import.meta.dir, '../../docs/operations')
const CADDYFILE = join(OPERATIONS, 'Caddyfile')

/** As a version stored it that bounded the text alone. */
function storeUnbounded(app: TestApp, code: string, url: string): void {
  app.administer(({ db }) => db.query('UPDATE links SET url = ? WHERE code = ?').run(url, code))
}

const ofBytes = (length: number) => 'https://example.com/'.padEnd(length, 'x')

testWith('nginx')(
  'the longest destinations, new ones and older ones, are redirected through nginx',
  async () => {
    using folder = temporaryFolder()
    await using app = await testApp()
    const older = {
      UMLAUTS1: `https://example.com/${'ü'.repeat(2700)}`,
      LETTERS1: `https://example.com/${'字'.repeat(8172)}`,
    }
    for (const code of Object.keys(older)) await app.claim(code)
    for (const [code, url] of Object.entries(older)) storeUnbounded(app, code, url)
    const destinations: Record<string, string> = { ...older }
    for (const length of [3800, 4500, 8192]) {
      const url = ofBytes(length)
      destinations[(await app.shorten(url)).code] = url
    }
    await using nginx = await Nginx.start(app.url, folder.path)
    for (const [code, url] of Object.entries(destinations)) {
      const answer = await fetch(`${nginx.url}/${code}`, { redirect: 'manual' })
      expect([code, answer.status]).toEqual([code, 302])
      expect(answer.headers.get('location')).toBe(new URL(url).href)
    }
  },
)

testWith('nginx')(
  'one-time links are not in the logs of nginx, however they are written',
  async () => {
    using folder = temporaryFolder()
    await using app = await testApp()
    const path = new URL(app.setupLink).pathname
    const token = path.split('/').at(-1) ?? ''
    await using nginx = await Nginx.start(app.url, folder.path)
    const opened = await fetch(nginx.url + path)
    expect([opened.status, opened.headers.get('referrer-policy')]).toEqual([200, 'strict-origin'])
    const spellings = [
      path.replace('setup', '%73etup'),
      path.replace('/app/', '//app/'),
      path.replace('setup', 'x/../setup'),
      `${path}/?a=b`,
      path.replace('setup', 'join'),
      path.replace('setup', 'reset'),
    ]
    for (const spelling of spellings) await fetch(nginx.url + spelling, { redirect: 'manual' })
    expect((await fetch(`${nginx.url}/app/sign-in`)).status).toBe(200)
    await app.stop()
    // nginx cannot reach the service now, and says so with the request's line.
    expect((await fetch(nginx.url + path)).status).toBe(502)
    expect(nginx.logs).toContain('/app/sign-in')
    expect(nginx.logs).not.toContain(token)
  },
)

testWith('nginx', 'browser')(
  'a browser that opens a one-time link names it to no log with the files of its page',
  async () => {
    using folder = temporaryFolder()
    await using app = await testApp()
    await using nginx = await Nginx.start(app.url, folder.path)
    const path = new URL(app.setupLink).pathname
    const browser = await launchBrowser()
    try {
      const page = await browser.newPage()
      await page.goto(nginx.url + path, { waitUntil: 'networkidle' })
      await page.getByLabel('E-mail address').fill(OWNER)
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
      await page.getByRole('button', { name: 'Create account' }).click()
      await page
        .getByText('hop_')
        .or(page.getByLabel('API key', { exact: true }))
        .first()
        .waitFor()
    } finally {
      await browser.close()
    }
    expect(nginx.logs).toContain('GET /app/assets/')
    expect(nginx.logs).not.toContain(path.split('/').at(-1) ?? '')
  },
  BROWSER_MS,
)

testWith('nginx')(
  'nginx passes the visitor’s address on, serves no metrics, and asks for images it has not',
  async () => {
    using folder = temporaryFolder()
    await using app = await testApp()
    const { code } = await app.claim('SPRING26')
    await using nginx = await Nginx.start(app.url, folder.path)
    expect((await fetch(`${nginx.url}/-/metrics`)).status).toBe(404)
    const image = await fetch(`${nginx.url}/cdn/qr/${code}.png`)
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png'])
    const spent = async (from: string) => {
      const headers = { 'x-forwarded-for': from }
      const answer = await fetch(`${nginx.url}/api/lookup/${code}`, { headers })
      return Number(answer.headers.get('x-ratelimit-remaining'))
    }
    // What the visitor claims is not passed on: both are the same caller.
    const first = await spent('192.0.2.7')
    expect(await spent('192.0.2.8')).toBe(first - 1)
  },
)

testWith('nginx')('nginx sends Strict-Transport-Security once', async () => {
  using folder = temporaryFolder()
  await using app = await testApp({ env: { BASE_URL: 'https://hop.test' } })
  await using nginx = await Nginx.start(app.url, folder.path)
  for (const path of ['/api/status', '/app/sign-in', '/NOSUCH26']) {
    const { headers } = await fetch(nginx.url + path)
    expect([path, headers.get('strict-transport-security')]).toEqual([path, 'max-age=31536000'])
  }
})

testWith('nginx')('nginx sends Strict-Transport-Security for further domains too', async () => {
  using folder = temporaryFolder()
  await using app = await appWithDomains()
  const upstream = readFileSync(join(OPERATIONS, 'nginx.conf'), 'utf8').split('\nserver {')[0]
  const site = readFileSync(join(OPERATIONS, 'nginx-domains.conf'), 'utf8').split('\nserver {')[2]
  await using nginx = await Nginx.start(app.url, folder.path, `${upstream}\nserver {${site}`)
  for (const path of [`/${L}`, '/NOSUCH26', '/']) {
    const { headers } = await fetch(nginx.url + path, { headers: { host: GO }, redirect: 'manual' })
    expect([path, headers.get('strict-transport-security')]).toEqual([path, 'max-age=31536000'])
  }
})

test('Caddy sends Strict-Transport-Security for further domains as for the primary one', () => {
  const header = /^\theader Strict-Transport-Security .*$/m
  const [primary, others] = ['Caddyfile', 'domains.caddy'].map(
    (name) => header.exec(readFileSync(join(OPERATIONS, name), 'utf8'))?.[0],
  )
  expect(primary).toBeString()
  expect(others).toBe(primary)
})

test('the Caddyfile keeps one-time links out of the access log too', () => {
  const text = readFileSync(CADDYFILE, 'utf8')
  const [, matcher = '', pattern = ''] = /^\t(@\w+) path_regexp (\S*app\S*)$/m.exec(text) ?? []
  expect(text).toContain(`\tlog_skip ${matcher}\n`)
  for (const page of ['setup', 'join', 'reset']) {
    expect(new RegExp(pattern).test(`/app/${page}/token`)).toBe(true)
  }
  expect(new RegExp(pattern).test('/app/links')).toBe(false)
})
