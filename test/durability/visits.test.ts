import { expect, test } from 'bun:test'
import { eventually, testApp } from '../support/app.ts'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { openQuickWorker } from '../support/reused-worker.ts'

/** Details of visits are a by-product: what loses them loses no hit. */

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'

interface Counted {
  hits: number
  known: number
}

async function follow(service: Service, code: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const headers = { 'user-agent': FIREFOX }
    const { status } = await service.fetch(`/${code}`, { redirect: 'manual', headers })
    expect(status).toBe(302)
  }
}

async function countsOf(service: Service, key: string, code: string): Promise<Counted> {
  const path = `/api/links/${code}/visits?by=browser`
  return (await service.fetch(path, { headers: { 'x-api-key': key } })).json() as Promise<Counted>
}

test('kill -9 loses no hit and no details that were written; a stop loses nothing', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  let service = await Service.start(env)
  const code = await service.shorten(key, 'https://example.com/')
  await follow(service, code, 5)
  await eventually('the first details are written', async () => {
    return (await countsOf(service, key, code)).known === 5
  })
  await follow(service, code, 7)
  await service.end('SIGKILL')

  service = await Service.start(env)
  const afterKill = await countsOf(service, key, code)
  expect(afterKill.hits).toBe(12)
  expect(await service.hitCount(code)).toBe(12)
  expect(afterKill.known).toBeGreaterThanOrEqual(5)
  await follow(service, code, 3)
  expect(await service.end('SIGTERM')).toBe(0)

  service = await Service.start(env)
  expect(await countsOf(service, key, code)).toMatchObject({
    hits: 15,
    known: afterKill.known + 3,
  })
  await service.end('SIGTERM')
})

test('redirects are counted while the thread of the details is dead, and it is started again', async () => {
  const workers: Worker[] = []
  await using app = await testApp({
    visitFlushMs: 20,
    openWorker: (url) => {
      const worker = openQuickWorker(url)
      if (url.pathname.endsWith('/visits.ts')) workers.push(worker)
      return worker
    },
  })
  const { body } = await app.call('POST', '/api/shorten', {
    key: 'free',
    json: { url: 'https://example.com/' },
  })
  const followed = () => app.call('GET', `/${body.code}`, { headers: { 'user-agent': FIREFOX } })
  workers[0]?.terminate()
  expect((await app.call('GET', '/-/ready')).status).toBe(200)
  for (let i = 0; i < 5; i++) expect((await followed()).status).toBe(302)
  await eventually('the thread runs again', () => workers.length > 1)
  for (let i = 0; i < 2; i++) expect((await followed()).status).toBe(302)
  // The ring has kept what was recorded meanwhile.
  await eventually('all details are there', async () => {
    const { body: counted } = await app.call('GET', `/api/links/${body.code}/visits`, {
      key: 'free',
    })
    return counted.known === 7 && counted.hits === 7
  })
})
