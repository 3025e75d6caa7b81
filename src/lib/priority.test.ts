import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { makeAccount, Service } from '../../test/support/binary.ts'
import { temporaryFolder } from '../../test/support/folder.ts'

interface Standing {
  nice: number
  policy: number
}

/** Field 41 of /proc/<pid>/stat is the policy; the name in field 2 may hold spaces. */
const STANDING = `
  const { readFileSync, readlinkSync } = require('node:fs')
  const { getPriority } = require('node:os')
  const thread = readlinkSync('/proc/thread-self').split('/').at(-1)
  const stat = readFileSync('/proc/thread-self/stat', 'utf8')
  const standing = {
    nice: getPriority(Number(thread)),
    policy: Number(stat.replace(/^.*\\) /s, '').split(' ')[38]),
  }`

const PRIORITY = JSON.stringify(new URL('./priority.ts', import.meta.url).pathname)

/** Priorities of a process, and of a thread that it starts with a priority. */
async function standings(priority: string, runner: string[] = []): Promise<[Standing, Standing]> {
  const call = `require(${PRIORITY}).setThreadPriority('${priority}')`
  const worker = `${call}; ${STANDING}; self.postMessage(standing)`
  const source = `
    const file = new File([${JSON.stringify(worker)}], 'thread.js', { type: 'text/javascript' })
    const worker = new Worker(URL.createObjectURL(file))
    worker.onmessage = ({ data }) => {
      ${STANDING}
      console.log(JSON.stringify([standing, data]))
      process.exit()
    }`
  const child = Bun.spawn([...runner, process.execPath, '-e', source])
  return JSON.parse(await child.stdout.text())
}

/** A suite that is nice itself leaves less to see: no thread may become less nice than it was. */
const own = getPriority(process.pid)

test.each([
  ['writes', 5],
  ['normal', 10],
  ['background', 19],
])('a thread of priority %s is nice, the one that started it is not', async (priority, nice) => {
  const [first, other] = await standings(priority)
  expect(first).toEqual({ nice: own, policy: 0 })
  expect(other).toEqual({ nice: Math.max(nice, own), policy: 0 })
})

test('no thread becomes less nice, and the policy that an operator chose stays', async () => {
  const runner = ['nice', '-n', '12', 'chrt', '--batch', '0']
  const nice = Math.min(19, own + 12)
  const [first, other] = await standings('normal', runner)
  expect(first).toEqual({ nice, policy: 3 })
  expect(other).toEqual({ nice, policy: 3 })
})

test('of a service, redirect threads come first, then the writer, then control and reader, then images', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path, REDIRECT_THREADS: '1' }
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  // The threads of lists and images start with their first use.
  await service.fetch('/api/list', { headers: { 'x-api-key': key } })
  const code = await service.shorten(key, 'https://example.com/image')
  await service.fetch(`/api/qr/${code}?format=svg`)
  const tasks = `/proc/${service.pid}/task`
  const nameOf = (thread: string) => {
    try {
      return readFileSync(`${tasks}/${thread}/comm`, 'utf8').trim()
    } catch {
      return 'ended meanwhile'
    }
  }
  const workers = readdirSync(tasks).filter((thread) => nameOf(thread) === 'Worker')
  const niceness = [service.pid, ...workers].map((thread) => getPriority(Number(thread)))
  const expected = [0, 5, 10, 10, 19].map((nice) => Math.max(nice, own))
  expect(niceness).toEqual(expect.arrayContaining(expected))
  expect(niceness.filter((nice) => nice === expected[2]).length).toBeGreaterThanOrEqual(2)
  // A thread that the engine has just begun for a worker still has its name, and its niceness.
  for (const nice of expected) niceness.splice(niceness.indexOf(nice), 1)
  expect(niceness.filter((nice) => !expected.slice(1).includes(nice))).toEqual([])
  expect(getPriority(service.pid)).toBe(Math.max(10, own))
})
