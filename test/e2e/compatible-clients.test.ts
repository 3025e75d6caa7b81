import { expect } from 'bun:test'
import { ShlinkApiClient } from '@shlinkio/shlink-js-sdk'
import { ErrorType } from '@shlinkio/shlink-js-sdk/api-contract'
import { FetchHttpClient } from '@shlinkio/shlink-js-sdk/fetch'
import { type TestApp, testApp } from '../support/app.ts'
import { browserTests } from '../support/browser.ts'
import { addKey } from '../support/members.ts'
import { findPythonClients, testWith } from '../support/tools.ts'

/** Programs that others wrote for YOURLS and Shlink use the service unchanged. */

const URL = 'https://example.com/'

const managing = (app: TestApp): string => {
  app.key('free')
  return addKey(app, 'free@example.com', { name: 'Manager', scope: 'manage' })
}

const PYTHON_MS = 120_000

/** What the program in Python prints: see `test/support/python-clients.py`. */
async function runPython(app: TestApp): Promise<Record<string, Record<string, unknown>>> {
  const program = `${import.meta.dir}/../support/python-clients.py`
  const env = { ...process.env, PYTHONPATH: findPythonClients() ?? '' }
  const run = Bun.spawn(['python3', program, app.url, managing(app)], { env, stderr: 'pipe' })
  const [text, problems] = await Promise.all([run.stdout.text(), run.stderr.text()])
  expect([await run.exited, problems]).toEqual([0, ''])
  return JSON.parse(text)
}

testWith('python clients')(
  'yourls, pyourls3, mcp-shlink and PyShlink of Python create, expand and read statistics',
  async () => {
    await using app = await testApp()
    const results = await runPython(app)
    expect(results.yourls).toEqual({
      created: ['http://hop.test/YOURLS01', 'YOURLS01', 'One'],
      expanded: `${URL}one`,
      clicks: 1,
      top: [`${URL}one`, 1],
      links: [2, 2],
      taken: ['YOURLSHTTPError', expect.stringContaining('400')],
      'no url': ['YOURLSNoURLError', expect.any(String)],
      loop: ['YOURLSNoLoopError', expect.any(String)],
      'wrong key': ['YOURLSHTTPError', expect.stringContaining('Please log in')],
      password: ['YOURLSHTTPError', expect.stringContaining('Invalid username or password')],
    })
    expect(results.pyourls3).toEqual({
      created: ['http://hop.test/YOURLS04', 'success', '200'],
      expanded: `${URL}four`,
      clicks: '1',
      links: 3,
      again: ['Pyourls3URLAlreadyExistsError', expect.stringContaining(`${URL}four`)],
      taken: ['Pyourls3APIError', expect.stringContaining('error:keyword')],
      'wrong key': ['Pyourls3APIError', expect.stringContaining('403')],
    })
    expect(results['mcp-shlink']).toEqual({
      created: {
        short_url: 'http://hop.test/SHLINK06',
        short_code: 'SHLINK06',
        long_url: `${URL}six`,
        date_created: '2026-03-01T12:00:00+00:00',
        tags: ['spring'],
        visits_count: 0,
      },
      visits: 1,
      meta: { validSince: null, validUntil: '2026-12-31T23:00:00+00:00', maxVisits: 10 },
      listed: ['SHLINK06', 1],
      total: 4,
      taken: ['HTTPStatusError', expect.stringContaining('400')],
      'wrong key': ['HTTPStatusError', expect.stringContaining('401')],
      deleted: ['HTTPStatusError', expect.stringContaining('404')],
    })
    expect(results.PyShlink).toEqual({
      found: [`${URL}one`, 1],
      total: 3,
      unknown: expect.objectContaining({ type: ErrorType.INVALID_SHORTCODE, status: 404 }),
    })
  },
  PYTHON_MS,
)

const { browser, test } = browserTests()

interface YourlsApi {
  connect(url: string, credentials: object, options?: object): void
  shorten(url: string, about: object, done: (result: unknown) => void): void
  url(url: string): Record<'expand' | 'stats', (done: (result: unknown) => void) => void>
  stats(criteria: object, done: (result: unknown) => void): void
  db: { stats(done: (result: unknown) => void): void }
  version(done: (result: unknown) => void): void
}

test('yourls-api in the page of another site creates, expands and reads statistics', async () => {
  await using app = await testApp()
  const html = { headers: { 'content-type': 'text/html' } }
  const page = () => new Response('<!doctype html><title>Shop</title>', html)
  using shop = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: page })
  await using context = await browser().newContext()
  const tab = await context.newPage()
  await tab.goto(shop.url.href)
  await tab.addScriptTag({ path: Bun.resolveSync('yourls-api/dist/yourls.js', import.meta.dir) })
  const results = await tab.evaluate(
    async ({ api, signature, url }) => {
      const { yourls } = globalThis as unknown as { yourls: YourlsApi }
      // Its default, JSONP.
      yourls.connect(api, { signature })
      const call = (begin: (done: (result: unknown) => void) => void) => new Promise(begin)
      const about = { keyword: 'SPRING26', title: 'Spring' }
      const link = yourls.url('SPRING26')
      return {
        created: await call((done) => yourls.shorten(url, about, done)),
        expanded: await call((done) => link.expand(done)),
        counted: await call((done) => link.stats(done)),
        listed: await call((done) => yourls.stats({ filter: 'top', limit: 1 }, done)),
        totals: await call((done) => yourls.db.stats(done)),
        version: await call((done) => yourls.version(done)),
      }
    },
    { api: `${app.url}/yourls-api.php`, signature: app.key('free'), url: URL },
  )
  const shorturl = 'http://hop.test/SPRING26'
  const link = { shorturl, url: URL, title: 'Spring', clicks: '0' }
  expect(results).toMatchObject({
    created: { shorturl, title: 'Spring', url: { keyword: 'SPRING26', url: URL } },
    expanded: { keyword: 'SPRING26', longurl: URL, shorturl },
    counted: link,
    listed: { links: [link], stats: { total_links: 1, total_clicks: 0 } },
    totals: { total_links: 1, total_clicks: 0 },
    version: { version: expect.any(String) },
  })
})

testWith()('the SDK of Shlink creates, reads, changes and deletes short URLs', async () => {
  await using app = await testApp()
  const clientOf = (apiKey: string) =>
    new ShlinkApiClient(new FetchHttpClient(), { baseUrl: app.url, apiKey })
  const client = clientOf(managing(app))
  const wanted = { longUrl: URL, customSlug: 'SPRING26', tags: ['spring'], findIfExists: true }
  const created = await client.createShortUrl(wanted)
  expect(created).toMatchObject({ shortUrl: 'http://hop.test/SPRING26', longUrl: URL })
  await app.call('GET', '/SPRING26')
  const { shortCode } = created
  expect((await client.getShortUrl({ shortCode })).visitsSummary?.total).toBe(1)
  const { data, pagination } = await client.listShortUrls({
    page: '1',
    tags: ['spring'],
    orderBy: { field: 'dateCreated', dir: 'DESC' },
  })
  expect([data.map((one: { shortCode: string }) => one.shortCode), pagination.totalItems]).toEqual([
    ['SPRING26'],
    1,
  ])
  const change = { longUrl: `${URL}new`, title: 'Spring', validUntil: null }
  expect(await client.updateShortUrl({ shortCode }, change)).toMatchObject({
    longUrl: `${URL}new`,
    title: 'Spring',
  })
  const typeOf = (asked: Promise<unknown>) =>
    asked.then(
      () => '',
      ({ type }) => type,
    )
  expect(await typeOf(client.createShortUrl(wanted))).toBe(ErrorType.INVALID_SLUG)
  expect(await typeOf(clientOf('no-key').listShortUrls())).toBe(ErrorType.INVALID_API_KEY)
  expect(await typeOf(client.tagsStats())).toBe(ErrorType.NOT_FOUND)
  expect((await client.health()).status).toBe('pass')
  await client.deleteShortUrl({ shortCode })
  expect(await typeOf(client.getShortUrl({ shortCode }))).toBe(ErrorType.INVALID_SHORTCODE)
})
