import { expect, test } from 'bun:test'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command, makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** Webhooks of the program: what a kill leaves, and the commands of the operator. */

const EVENTS = ['link.created']

/** Answers requests with `respond`, and keeps their ids. */
async function receiver() {
  const ids: string[] = []
  const state = { respond: (response: ServerResponse): void => void response.end('ok') }
  const server = createServer((request: IncomingMessage, response) => {
    ids.push(String(request.headers['webhook-id']))
    request.resume().on('end', () => state.respond(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { ids, state, url: `http://127.0.0.1:${port}/`, [Symbol.dispose]: close }
}

const settings = (path: string): Settings => ({
  ...unlimited(join(path, 'data')),
  OUTGOING_HOSTS: '127.0.0.1',
})

test('an event is delivered after a kill between the answer of a change and the delivery', async () => {
  using folder = temporaryFolder()
  using there = await receiver()
  const env = settings(folder.path)
  const key = await makeAccount(env)
  {
    await using service = await Service.start(env)
    await service.post('/api/webhooks', key, { url: there.url, events: EVENTS })
    there.state.respond = () => {}
    await service.shorten(key, 'https://example.com/1')
    await service.end('SIGKILL')
  }
  const before = there.ids.length
  there.state.respond = (response) => void response.end('ok')
  await using _service = await Service.start(env)
  await eventually('it was delivered', () => there.ids.length > before)
  expect(new Set(there.ids).size).toBe(1)
  const checked = await command(['check'], env)
  expect([checked.code, checked.out.includes('PROBLEM')]).toEqual([0, false])
}, 120_000)

test('an event is delivered again with its id after a kill that follows the answer of the receiver', async () => {
  using folder = temporaryFolder()
  using there = await receiver()
  const env = settings(folder.path)
  const key = await makeAccount(env)
  {
    const service = await Service.start(env)
    await service.post('/api/webhooks', key, { url: there.url, events: EVENTS })
    // Before the service can store what it has read.
    there.state.respond = (response) => {
      response.write('ok')
      process.kill(service.pid, 'SIGKILL')
    }
    await service.shorten(key, 'https://example.com/1').catch(() => {})
    await eventually('the service has ended', () => there.ids.length > 0)
    await service.end('SIGKILL')
  }
  there.state.respond = (response) => void response.end('ok')
  await using _service = await Service.start(env)
  await eventually('it was delivered again', () => there.ids.length > 1)
  expect(new Set(there.ids).size).toBe(1)
}, 120_000)

test('hopcode webhook lists the webhooks of all accounts, and disables one', async () => {
  using folder = temporaryFolder()
  using there = await receiver()
  const env = settings(folder.path)
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  expect((await command(['webhook', 'list', '--json'], env)).out.trim()).toBe('')
  await service.post('/api/webhooks', key, { url: there.url, events: EVENTS })
  const list = async () => JSON.parse((await command(['webhook', 'list', '--json'], env)).out)
  const view = { id: 1, account: 'enterprise@example.com', url: there.url, queued: 0 }
  expect(await list()).toEqual({ ...view, state: 'active', reason: null })
  const disabled = await command(['webhook', 'disable', '1'], env)
  expect([disabled.code, disabled.out]).toEqual([0, 'Webhook 1 is disabled.\n'])
  expect(await list()).toEqual({ ...view, state: 'disabled', reason: 'operator' })
  await service.shorten(key, 'https://example.com/1')
  const unknown = await command(['webhook', 'disable', '7'], env)
  expect([unknown.code, unknown.out]).toEqual([1, ''])
  expect(there.ids).toEqual([])
}, 120_000)
