import { expect, test } from 'bun:test'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import parsePrometheus from 'parse-prometheus-text-format'
import { version } from '../../package.json' with { type: 'json' }
import { FAMILIES } from '../../src/status/families.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { openBeside } from '../support/database.ts'
import { temporaryFolder } from '../support/folder.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** What those who run the service see: /-/metrics, /-/live, /-/ready. */

const OPERATIONS = join(import.meta.dir, '../../docs/operations')

/** The page as Prometheus on this machine gets it. */
async function scrape(app: TestApp): Promise<string> {
  const response = await fetch(`${app.url}/-/metrics`)
  expect(response.status).toBe(200)
  return response.text()
}

/** Whole lines of a family, without its help. */
function linesOf(page: string, name: string): string[] {
  return page
    .split('\n')
    .filter((line) => new RegExp(`^${name}(_(bucket|sum|count))?[ {]`).test(line))
}

function valueAt(page: string, series: string): number | undefined {
  const line = page.split('\n').find((text) => text.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

/** Scrapes until a series has a value: answers are counted after they are sent. */
async function awaitValue(app: TestApp, series: string, value: number): Promise<void> {
  let found: number | undefined
  await eventually(`${series} is ${value}`, async () => {
    found = valueAt(await scrape(app), series)
    return found === value
  })
  expect(found).toBe(value)
}

async function useEverything(app: TestApp): Promise<void> {
  const { code } = await app.claim('SPRING26')
  await app.call('GET', `/${code}`)
  await app.call('GET', '/NOBODY99')
  await app.call('GET', `/api/lookup/${code}`)
}

// design: 3 /-/metrics
test('the page is Prometheus text 0.0.4, and every family has its help, its type and samples', async () => {
  await using app = await testApp()
  await useEverything(app)
  await awaitValue(app, 'hopcode_accounts{plan="free"}', 1)
  const response = await fetch(`${app.url}/-/metrics`)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  const page = await response.text()
  const families = parsePrometheus(page)
  expect(families.length).toBeGreaterThan(40)
  for (const { name, help, type, metrics } of families) {
    expect(name).toMatch(/^hopcode_[a-z][a-z_]*[a-z]$/)
    expect([name, help]).toEqual([name, expect.stringMatching(/^[A-Z0-9].{10,}\.$/)])
    expect([name, metrics.length > 0]).toEqual([name, true])
    expect([name, type === 'COUNTER']).toEqual([name, name.endsWith('_total')])
  }
  const samples = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  for (const line of samples) expect(line).toMatch(/^hopcode_\w+(\{.*\})? [-+]?[\d.]+(e[-+]\d+)?$/)
  expect(new Set(samples.map((line) => line.split(' ').slice(0, -1).join(' '))).size).toBe(
    samples.length,
  )
})

testWith('promtool')('promtool has no complaint about the page and the alerts', async () => {
  await using app = await testApp()
  await useEverything(app)
  await awaitValue(app, 'hopcode_accounts{plan="free"}', 1)
  const page = new Response(await scrape(app))
  const check = Bun.spawnSync(['promtool', 'check', 'metrics'], { stdin: await page.blob() })
  expect([check.exitCode, `${check.stdout}${check.stderr}`]).toEqual([0, ''])
  const rules = Bun.spawnSync(['promtool', 'check', 'rules', join(OPERATIONS, 'alerts.yml')])
  expect([rules.exitCode, String(rules.stderr)]).toEqual([0, ''])
})

testWith('promtool')(
  'the configuration for Prometheus is valid, and its path has the metrics',
  async () => {
    const page = readFileSync(join(OPERATIONS, 'monitoring.md'), 'utf8')
    const [, yaml = ''] = /```yaml\n(# prometheus\.yml\n.*?)```/s.exec(page) ?? []
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'prometheus.yml'), yaml)
    cpSync(join(OPERATIONS, 'alerts.yml'), join(folder.path, 'alerts.yml'))
    const check = Bun.spawnSync(['promtool', 'check', 'config', 'prometheus.yml'], {
      cwd: folder.path,
    })
    expect([check.exitCode, String(check.stderr)]).toEqual([0, ''])
    const [job] = (Bun.YAML.parse(yaml) as { scrape_configs: { metrics_path?: string }[] })
      .scrape_configs
    await using app = await testApp()
    // Prometheus's default is /metrics.
    const response = await fetch(app.url + (job?.metrics_path ?? '/metrics'))
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('hopcode_ready 1')
  },
)

test('answers are counted by route, method and status, and never by path', async () => {
  await using app = await testApp()
  await useEverything(app)
  await app.call('HEAD', '/SPRING26')
  await app.call('GET', '/api/list', { key: 'nonsense' })
  await app.call('POST', '/api/reserve', { key: 'free', json: { code: '!' } })
  await app.call('GET', '/some/unknown/secret-path')
  await app.call('GET', '/api/unknown/secret-path')
  await app.call('PUT', '/api/status')
  await app.call('PROPFIND', '/api/status').catch(() => {})
  const count = (route: string, method: string, status: number) =>
    `hopcode_http_requests_total{route="${route}",method="${method}",status="${status}"}`
  await awaitValue(app, count('unmatched', 'PUT', 405), 1)
  await awaitValue(app, count('/api/reserve', 'POST', 201), 1)
  await awaitValue(app, count('/api/reserve', 'POST', 400), 1)
  await awaitValue(app, count('/api/lookup/:code', 'GET', 200), 1)
  await awaitValue(app, count('/api/list', 'GET', 401), 1)
  await awaitValue(app, count('unmatched', 'GET', 404), 1)
  await awaitValue(app, count('/:code', 'GET', 302), 1)
  await awaitValue(app, count('/:code', 'HEAD', 302), 1)
  await awaitValue(app, count('/:code', 'GET', 404), 2)
  const page = await scrape(app)
  for (const secret of ['secret-path', 'SPRING26', 'NOBODY99', 'nonsense', 'example.com', '@']) {
    expect(page).not.toContain(secret)
  }
  expect(
    valueAt(
      page,
      'hopcode_http_request_duration_seconds_count{route="/api/reserve",method="POST"}',
    ),
  ).toBe(2)
})

test('redirects are told by outcome, and a refused one by its limit', async () => {
  const env = { ANONYMOUS_READS_PER_MINUTE: '1', ANONYMOUS_REDIRECTS_PER_MINUTE: '2' }
  await using app = await testApp({ env })
  await app.claim('SPRING26')
  const from = '198.51.100.7'
  const paths = ['/SPRING26', '/SPRING26', '/NOBODY99', '/SPRING26', '/NOBODY99', '/NOBODY98']
  for (const path of paths) await app.call('GET', path, { from })
  const page = await scrape(app)
  expect(linesOf(page, 'hopcode_redirects_total')).toEqual([
    'hopcode_redirects_total{outcome="found"} 2',
    'hopcode_redirects_total{outcome="not_found"} 1',
    'hopcode_redirects_total{outcome="disabled"} 0',
    'hopcode_redirects_total{outcome="expired"} 0',
    'hopcode_redirects_total{outcome="protected"} 0',
    'hopcode_redirects_total{outcome="limited"} 3',
    'hopcode_redirects_total{outcome="prefetch"} 0',
    'hopcode_redirects_total{outcome="preview"} 0',
    'hopcode_redirects_total{outcome="failed"} 0',
  ])
  const refusals = (budget: string) =>
    `hopcode_limiter_refusals_total{callers="address",budget="${budget}"}`
  expect(valueAt(page, refusals('read'))).toBe(2)
  expect(valueAt(page, refusals('redirect'))).toBe(1)
  for (const budget of ['read', 'redirect']) {
    const callers = `hopcode_limiter_callers{callers="address",budget="${budget}"}`
    expect([budget, valueAt(page, callers)]).toEqual([budget, 1])
  }
  expect(valueAt(page, 'hopcode_redirect_duration_seconds_count')).toBe(1)
})

test('hits are counted once, from the journal into the database, over a restart too', async () => {
  await using app = await testApp({ env: { HIT_FLUSH_MS: '10' } })
  await app.claim('SPRING26')
  for (let i = 0; i < 3; i++) await app.call('GET', '/SPRING26')
  await awaitValue(app, 'hopcode_hits_flushed_total', 3)
  const page = await scrape(app)
  expect(valueAt(page, 'hopcode_hits_appended_total')).toBe(3)
  expect(valueAt(page, 'hopcode_hits_pending')).toBe(0)
  expect(valueAt(page, 'hopcode_hits_flush_duration_seconds_count')).toBeWithin(1, 4)
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir, env: { HIT_FLUSH_MS: '60000' } })
  await again.call('GET', '/SPRING26')
  const after = await scrape(again)
  expect(valueAt(after, 'hopcode_hits_appended_total')).toBe(1)
  expect(valueAt(after, 'hopcode_hits_flushed_total')).toBe(0)
  expect(valueAt(after, 'hopcode_hits_pending')).toBe(1)
})

test('a full journal and a disk that refuses show, with every hit that waits', async () => {
  await using app = await testApp({ env: { HIT_FLUSH_MS: '5' }, journalEntries: 4 })
  await app.claim('SPRING26')
  using db = openBeside(app.dataDir)
  db.run(`CREATE TRIGGER refuse BEFORE UPDATE ON hit_totals BEGIN SELECT RAISE(ABORT, 'no'); END`)
  for (let i = 0; i < 6; i++) await app.call('GET', '/SPRING26')
  await awaitValue(app, 'hopcode_writes_failing', 1)
  const page = await scrape(app)
  expect(valueAt(page, 'hopcode_hits_appended_total')).toBe(6)
  expect(valueAt(page, 'hopcode_hits_pending')).toBe(6)
  expect(valueAt(page, 'hopcode_hits_overflow')).toBe(2)
  expect(valueAt(page, 'hopcode_hits_journal_fill_ratio')).toBe(1)
  expect(valueAt(page, 'hopcode_hits_flush_failures_total')).toBeGreaterThan(0)
  // Another write that succeeds in between makes it ready for a moment.
  await awaitValue(app, 'hopcode_ready', 0)
  db.run('DROP TRIGGER refuse')
  await awaitValue(app, 'hopcode_hits_flushed_total', 6)
  await awaitValue(app, 'hopcode_ready', 1)
})

test('the state of the service is there: version, maintenance, accounts, links, files, process', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  app.maintenance(app.now() + 60_000)
  await awaitValue(app, 'hopcode_links{plan="free"}', 1)
  const page = await scrape(app)
  expect(page).toContain(`hopcode_build_info{version="${version}",bun="${Bun.version}"} 1`)
  expect(valueAt(page, 'hopcode_maintenance')).toBe(1)
  expect(valueAt(page, 'hopcode_ready')).toBe(1)
  for (const name of [
    'hopcode_database_size_bytes',
    'hopcode_wal_size_bytes',
    'hopcode_disk_available_bytes',
    'hopcode_process_resident_memory_bytes',
    'hopcode_process_open_fds',
    'hopcode_process_max_fds',
    'hopcode_schema_version',
    'hopcode_writer_commit_duration_seconds_count',
  ]) {
    expect([name, valueAt(page, name)]).toEqual([name, expect.any(Number)])
    expect(valueAt(page, name)).toBeGreaterThan(0)
  }
  expect(valueAt(page, 'hopcode_process_start_time_seconds')).toBeWithin(
    Date.now() / 1000 - 3600,
    Date.now() / 1000 + 1,
  )
  await awaitValue(app, 'hopcode_thread_calls_pending{thread="writer"}', 0)
})

test('the heap is no more than what is resident, whatever buffers lie beside it', async () => {
  await using app = await testApp()
  // Pages that nobody writes to are not resident.
  const untouched = new Uint8Array(2 ** 31)
  Bun.gc(true)
  const page = await scrape(app)
  expect(untouched.byteLength).toBe(2 ** 31)
  const resident = valueAt(page, 'hopcode_process_resident_memory_bytes') ?? 0
  expect(valueAt(page, 'hopcode_process_heap_bytes')).toBeWithin(1, resident)
})

const behindProxy = shared(testApp)

// Anonymous clients must not read internals of the service.
test.each([
  { name: 'behind a proxy', headers: { 'x-forwarded-for': '203.0.113.9' } },
  { name: 'behind a proxy that writes RFC 7239', headers: { forwarded: 'for=203.0.113.9' } },
  { name: 'behind a proxy that names itself', headers: { via: '1.1 proxy' } },
  { name: 'behind a proxy that tells the scheme alone', headers: { 'x-forwarded-proto': 'https' } },
  { name: 'behind a proxy that tells the host alone', headers: { 'x-forwarded-host': 'hop.test' } },
])('a caller $name gets the 404 of an unknown path', async ({ headers }) => {
  const app = await behindProxy()
  const answer = await fetch(`${app.url}/-/metrics`, { headers: { ...headers } })
  const unknown = await fetch(`${app.url}/-/nothing`, { headers: { ...headers } })
  expect(answer.status).toBe(404)
  expect(await answer.json()).toEqual({ error: 'Not found' })
  expect(unknown.status).toBe(404)
})

// A proxy that adds no header makes every caller one of this machine.
test.each([
  { BASE_URL: 'https://hop.test', TRUSTED_PROXIES: '' },
  { BASE_URL: 'http://hop.test', TRUSTED_PROXIES: '127.0.0.1' },
])('behind a proxy the public address has no metrics, for this machine either: %j', async (env) => {
  await using app = await testApp({ env, localMetrics: false })
  const answer = await fetch(`${app.url}/-/metrics`)
  expect([answer.status, await answer.json()]).toEqual([404, { error: 'Not found' }])
  expect((await fetch(`${app.url}/-/ready`)).status).toBe(200)
})

test('with METRICS_LISTEN the page is at that address alone, and the probes at both', async () => {
  await using app = await testApp({ env: { METRICS_LISTEN: '127.0.0.1:0' } })
  const answer = await fetch(`${app.url}/-/metrics`)
  expect([answer.status, await answer.json()]).toEqual([404, { error: 'Not found' }])
  const headers = { 'x-forwarded-for': '203.0.113.9' }
  const page = await fetch(`${app.operatorsUrl}/-/metrics`, { headers })
  expect([page.status, await page.text()]).toEqual([
    200,
    expect.stringContaining('hopcode_ready 1'),
  ])
  for (const url of [app.url, app.operatorsUrl]) {
    expect(await (await fetch(`${url}/-/live`)).json()).toEqual({ status: 'live' })
    expect(await (await fetch(`${url}/-/ready`)).json()).toEqual({ status: 'ready' })
  }
  for (const path of ['/api/status', '/SPRING26', '/app', '/docs']) {
    const found = await fetch(app.operatorsUrl + path)
    expect([path, found.status, await found.json()]).toEqual([path, 404, { error: 'Not found' }])
  }
})

test('the page takes no budget, and goes on during maintenance', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  app.maintenance(app.now() + 60_000)
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await fetch(`${app.url}/-/metrics`)
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, null])
  }
})

test('a service that is about to stop is alive and not ready', async () => {
  await using app = await testApp({ env: { METRICS_LISTEN: '127.0.0.1:0' } })
  await app.beginStop()
  for (const url of [app.url, app.operatorsUrl]) {
    const { status, body } = await call(`${url}/-/ready`)
    expect(status).toBe(503)
    expect(body).toEqual({
      error: 'Service is stopping',
      request_id: expect.stringMatching(/./),
      status: 'stopping',
    })
    expect((await call(`${url}/-/live`)).status).toBe(200)
  }
  const { status } = await app.call('GET', '/api/status')
  expect(status).toBe(200)
})

test('the dashboard and the alerts speak only of series that the page has', async () => {
  await using app = await testApp()
  await useEverything(app)
  await awaitValue(app, 'hopcode_accounts{plan="free"}', 1)
  const page = await scrape(app)
  const ofOthers = Object.keys(FAMILIES).filter((name) =>
    /^hopcode_(cluster|certificate)_/.test(name),
  )
  const known = new Set([...(page.match(/^hopcode_\w+/gm) ?? []), ...ofOthers])
  const dashboard = JSON.parse(await Bun.file(join(OPERATIONS, 'grafana-dashboard.json')).text())
  const expressions: string[] = dashboard.panels.flatMap((panel: Panel) =>
    (panel.targets ?? []).map(({ expr }) => expr),
  )
  const rules = Bun.YAML.parse(await Bun.file(join(OPERATIONS, 'alerts.yml')).text()) as Rules
  const alerts = rules.groups.flatMap((group) => group.rules)
  expect(expressions.length).toBeGreaterThan(20)
  expect(alerts.length).toBeGreaterThan(10)
  const spoken = [...expressions, ...alerts.map(({ expr }) => expr)]
  for (const expr of spoken) {
    for (const name of expr.match(/\bhopcode_\w+/g) ?? []) {
      expect([expr, name, known.has(name)]).toEqual([expr, name, true])
    }
  }
  const ids = dashboard.panels.map(({ id }: Panel) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const guide = await Bun.file(join(OPERATIONS, 'monitoring.md')).text()
  for (const { alert, annotations } of alerts) {
    expect([alert, annotations.summary.length > 0]).toEqual([alert, true])
    expect([alert, guide.includes(alert)]).toEqual([alert, true])
  }
  const families = page.match(/(?<=^# TYPE )\w+/gm) ?? []
  expect([...families, ...ofOthers].filter((name) => !guide.includes(name))).toEqual([])
})

interface Panel {
  id: number
  targets?: { expr: string }[]
}

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[]
}

async function call(url: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url)
  return { status: response.status, body: await response.json() }
}
