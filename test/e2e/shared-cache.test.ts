import { expect } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { testWith } from '../support/tools.ts'

/** A shared cache with its default configuration, between the service and all its clients. */

/** Varnish with its built-in configuration, a shared cache, in front of a service. */
async function startVarnish(
  service: string,
  folder: string,
): Promise<AsyncDisposable & { url: string }> {
  const port = freePort()
  const { host } = new URL(service)
  const options = ['-n', folder, '-j', 'none', '-s', 'default,16m', '-T', 'none']
  const listen = ['-a', `127.0.0.1:${port}`, '-b', host]
  const child = Bun.spawn(['varnishd', '-F', ...options, ...listen], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const url = `http://127.0.0.1:${port}`
  await eventually('Varnish answers', async () => {
    if (child.exitCode !== null) throw new Error('it ended')
    return (await fetch(`${url}/-/live`).catch(() => undefined))?.ok === true
  })
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

const BROWSER = { accept: 'text/html', 'sec-fetch-dest': 'document' }

async function behindCache(run: (app: TestApp, ask: Ask) => Promise<void>): Promise<void> {
  using folder = temporaryFolder()
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '0' } })
  await using varnish = await startVarnish(app.url, folder.path)
  await run(app, async (path, headers = {}) => {
    const answer = await fetch(varnish.url + path, { headers, redirect: 'manual' })
    const { status } = answer
    return { status, headers: answer.headers, text: await answer.text() }
  })
}

type Ask = (
  path: string,
  headers?: Record<string, string>,
) => Promise<{ status: number; headers: Headers; text: string }>

testWith('varnish')('nobody gets the response to another caller from a shared cache', () =>
  behindCache(async (app, ask) => {
    const { code } = await app.claim('SPRING26', 'https://example.com/mine')
    const paths = [
      'list',
      'export',
      'hits',
      'visits',
      ...['', '/hits', '/visits'].map((rest) => `links/${code}${rest}`),
    ]
    for (const path of paths.map((name) => `/api/${name}`)) {
      const own = await ask(path, { 'x-api-key': app.key('free') })
      expect([path, own.status]).toEqual([path, 200])
      for (const key of [app.key('pro'), 'wrong', undefined]) {
        const other = await ask(path, key === undefined ? {} : { 'x-api-key': key })
        expect([path, other.text.includes('example.com/mine')]).toEqual([path, false])
        expect([path, other.text.includes(code)]).toEqual([path, other.status === 404])
        if (key !== app.key('pro')) expect([path, other.status]).toEqual([path, 401])
      }
    }
    const program = await ask('/NOSUCH26')
    const browser = await ask('/NOSUCH26', BROWSER)
    expect(program.headers.get('content-type')).toContain('application/json')
    expect(browser.headers.get('content-type')).toContain('text/html')
    // The cache works: images come from it.
    await ask(`/api/qr/${code}`)
    expect((await ask(`/api/qr/${code}`)).headers.get('x-varnish')).toMatch(/^\d+ \d+$/)
  }),
)

testWith('varnish')('a change is visible behind a shared cache at once', () =>
  behindCache(async (app, ask) => {
    for (const path of ['/SPRING26', '/api/lookup/SPRING26', '/api/qr-image/SPRING26']) {
      for (const headers of [{}, BROWSER]) expect((await ask(path, headers)).status).toBe(404)
    }
    const { code, passcode } = await app.claim('SPRING26', 'https://example.com/1')
    expect((await ask('/SPRING26')).headers.get('location')).toBe('https://example.com/1')
    expect((await ask('/api/lookup/SPRING26')).text).toContain('"hit_count":1')
    expect((await ask('/api/qr-image/SPRING26')).status).toBe(200)
    const json = { code, passcode, url: 'https://example.com/2' }
    await app.call('POST', '/api/update', { key: 'free', json })
    expect((await ask('/SPRING26')).headers.get('location')).toBe('https://example.com/2')
    expect((await ask('/api/lookup/SPRING26')).text).toContain('example.com/2')
    for (const paused of [true, false, true, false]) {
      await app.call('PATCH', `/api/links/${code}`, { key: 'free', json: { paused } })
      for (const headers of [{}, BROWSER]) {
        expect((await ask('/SPRING26', headers)).status).toBe(paused ? 404 : 302)
      }
    }
    await app.call('POST', '/api/delete', { key: 'free', json: { code, passcode } })
    for (const path of ['/SPRING26', '/api/lookup/SPRING26', '/api/qr-image/SPRING26']) {
      expect([path, (await ask(path)).status]).toEqual([path, 404])
    }
    expect((await ask('/-/ready')).status).toBe(200)
    await app.beginStop()
    expect((await ask('/-/ready')).status).toBe(503)
  }),
)
