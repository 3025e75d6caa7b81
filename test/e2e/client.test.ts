import { expect, test } from 'bun:test'
import { CLIENT_TYPES, clientTypes } from '../../scripts/client-types.ts'
import { Hopcode, type HopcodeError } from '../../src/client/client.ts'
import { testApp } from '../support/app.ts'
import { makeAccount, Service } from '../support/binary.ts'
import { decodeQr } from '../support/decode-qr.ts'
import { temporaryFolder } from '../support/folder.ts'
import { messageOf } from '../support/refusals.ts'

/** The client against the real service. */

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: HopcodeError) => error,
  )

test('the client reaches every endpoint', async () => {
  await using app = await testApp()
  const hopcode = new Hopcode({ url: app.url, apiKey: app.key('free') })
  const url = 'https://example.com/flyer'

  const created = await hopcode.shorten(url)
  if (created.reused) throw new Error('a new URL makes a new code')
  const { code, passcode } = created
  expect(await hopcode.shorten(url)).toMatchObject({ code, passcode: null, reused: true })
  expect(await hopcode.follow(code)).toBe(url)
  expect(await hopcode.lookup(code.toLowerCase())).toMatchObject({ code, url, hit_count: 1 })

  const reserved = await hopcode.reserve('spring26')
  expect(reserved).toMatchObject({ code: 'SPRING26', url: null, reserved: true })
  const change = { code: 'SPRING26', passcode: reserved.passcode, url: 'https://example.com/2' }
  expect(await hopcode.update(change)).toMatchObject({ url: change.url, updated: true })

  const { results } = await hopcode.bulkShorten([url, 'ftp://example.com/'])
  expect(results).toMatchObject([{ ok: true, reused: true }, { ok: false }])

  const page = await hopcode.list({ limit: 1, search: 'EXAMPLE' })
  expect(page).toMatchObject({ total: 2, limit: 1, count: 1, items: [{ code: 'SPRING26' }] })
  const codes: string[] = []
  for await (const link of hopcode.listAll()) codes.push(link.code)
  expect(codes).toEqual(['SPRING26', code])

  const day = { from: '2026-03-01', to: '2026-03-01' }
  expect(await hopcode.linkHits(code, { ...day, by: 'hour' })).toMatchObject({ code, total: 1 })
  expect(await hopcode.linkVisits(code, { by: 'os', limit: 5 })).toMatchObject({ code, by: 'os' })
  expect(await hopcode.visits()).toMatchObject({ by: 'referrer' })
  expect((await hopcode.hits(day)).buckets).toHaveLength(1)

  const image = await hopcode.qr(code, { size: 256, dark: '#000000' })
  expect(image.type).toBe('image/png')
  expect((await decodeQr(image.bytes)).text).toBe(`http://hop.test/${code}`)
  expect((await hopcode.qr(code, { format: 'svg' })).type).toBe('image/svg+xml')
  const stored = `http://hop.test/cdn/qr/${code}.png`
  expect(await hopcode.qrStorageUrl(code)).toBe(stored)
  expect(await hopcode.qrAddresses(code)).toMatchObject({ qr_storage_url: stored })

  const own = await hopcode.patchLink(code, { title: 'Flyer', tags: ['Spring'], paused: false })
  expect(own).toMatchObject({ code, url, title: 'Flyer', tags: ['spring'], hit_count: 1 })
  expect(await hopcode.getLink(code)).toEqual(own)
  expect(await hopcode.history(code, { limit: 1 })).toMatchObject({
    items: [{ kind: 'created', after: url, links: 1 }],
    next: null,
  })
  expect(await Array.fromAsync(hopcode.allLinks({ search: code }))).toEqual([own])

  expect(await hopcode.status()).toMatchObject({ status: 'operational', total_redirects: 1 })
  expect(await hopcode.delete({ code, passcode })).toEqual({ code, deleted: true })
  expect(await failureOf(hopcode.lookup(code))).toMatchObject({
    status: 404,
    kind: 'not_found',
    message: `Code not found: ${code}`,
  })
})

test('a refusal is an error with the message of the service', async () => {
  await using app = await testApp()
  const anonymous = new Hopcode({ url: app.url })
  expect(await failureOf(anonymous.shorten('https://example.com/'))).toMatchObject({
    kind: 'invalid_api_key',
    message: 'Invalid or missing API key',
  })
  const hopcode = new Hopcode({ url: app.url, apiKey: app.key('free') })
  expect(await failureOf(hopcode.shorten('example.com'))).toMatchObject({
    kind: 'invalid_request',
    message: messageOf('invalid_url'),
  })
  await hopcode.reserve('SPRING26')
  expect(await failureOf(hopcode.reserve('SPRING26'))).toMatchObject({ kind: 'code_in_use' })
})

test('a call during maintenance waits for its announced end, and then succeeds', async () => {
  await using app = await testApp()
  app.maintenance(app.now() + 90_000)
  const delays: number[] = []
  const sleep = async (ms: number) => {
    delays.push(ms)
    app.advance(ms)
  }
  const hopcode = new Hopcode({ url: app.url, apiKey: app.key('free'), sleep })
  expect(await hopcode.shorten('https://example.com/')).toMatchObject({ reused: false })
  expect(delays).toEqual([90_000])
})

test('a call to a service that is killed succeeds once it runs again', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path, LOG_LEVEL: 'warn' }
  const apiKey = await makeAccount(env)
  await using first = await Service.start(env)
  let running = first
  const hopcode = new Hopcode({
    url: first.url,
    apiKey,
    fetch: (url, init) => fetch(url.replace(first.url, running.url), init),
    sleep: async () => {
      if (running === first) running = await Service.start(env)
    },
  })
  const { code } = await hopcode.shorten('https://example.com/before')
  await first.end('SIGKILL')
  expect(await hopcode.lookup(code)).toMatchObject({ url: 'https://example.com/before' })
  expect(await hopcode.shorten('https://example.com/after')).toMatchObject({ reused: false })
  await running[Symbol.asyncDispose]()
})

test('the built client is one module that runs in Node', async () => {
  await using app = await testApp()
  using folder = temporaryFolder()
  const tsc = ['node_modules/.bin/tsc', '-p', 'tsconfig.client.json', '--outDir', folder.path]
  expect(Bun.spawnSync(tsc).exitCode).toBe(0)
  const script = `
    import { Hopcode } from ${JSON.stringify(`${folder.path}/client.js`)}
    const hopcode = new Hopcode({ url: process.argv[1], apiKey: process.argv[2] })
    const { short_url, url } = await hopcode.shorten('https://example.com/node')
    console.log(url === 'https://example.com/node' && short_url.startsWith('http://hop.test/'))`
  const words = ['node', '--input-type=module', '-e', script, app.url, app.key('free')]
  const node = Bun.spawn(words, { stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([
    new Response(node.stdout).text(),
    new Response(node.stderr).text(),
  ])
  expect([out, err, await node.exited]).toEqual(['true\n', '', 0])
})

test('the types of the client are those of the OpenAPI document', async () => {
  expect(await Bun.file(CLIENT_TYPES).text()).toBe(await clientTypes())
})
