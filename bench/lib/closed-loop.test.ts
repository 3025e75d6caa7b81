import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testWith } from '../../test/support/tools.ts'
import { ownClosedLoop } from './closed-loop.ts'
import { closedLoop } from './closed-part.ts'
import { TemporaryFolder } from './leftovers.ts'
import { isInstalled } from './machine.ts'
import type { Target } from './raw-client.ts'
import { wrkClosedLoop } from './wrk.ts'

const TARGETS: Target[] = ['/a', '/b'].map((path) => ({ path, status: 302, location: '/there' }))
const CONNECTIONS = 8

async function load(generate: typeof ownClosedLoop, answer: () => Response, seconds: number) {
  const served = new Map<string, number>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const { pathname } = new URL(url)
      served.set(pathname, (served.get(pathname) ?? 0) + 1)
      return answer()
    },
  })
  try {
    const load = { targets: TARGETS, connections: CONNECTIONS, seconds }
    const figures = await generate({ hostname: '127.0.0.1', port: server.port ?? 0, ...load })
    return { figures, a: served.get('/a') ?? 0, b: served.get('/b') ?? 0 }
  } finally {
    await server.stop(true)
  }
}

const redirected = () => new Response(null, { status: 302, headers: { Location: '/there' } })

test('our generator counts exactly what the server served, target by target in turn', async () => {
  const { figures, a, b } = await load(ownClosedLoop, redirected, 0.2)
  expect(figures).toMatchObject({ generator: 'own', failed: 0, requests: a + b })
  expect(Math.abs(a - b)).toBeLessThanOrEqual(1)
  expect(figures.requests).toBeGreaterThan(CONNECTIONS)
  expect(figures.p50).toBeGreaterThan(0)
  expect(figures.p99).toBeGreaterThanOrEqual(figures.p50)
})

test('our generator takes a redirect to another place for a failure', async () => {
  const astray = () => new Response(null, { status: 302, headers: { Location: '/elsewhere' } })
  const { figures } = await load(ownClosedLoop, astray, 0.1)
  expect(figures.failed).toBe(figures.requests)
})

/** Serves each path that was asked for, in order, until the load is over. */
async function pathsOf(generate: typeof ownClosedLoop, target: Target, firstNumber = 0) {
  const paths: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      paths.push(new URL(url).pathname)
      return new Response(null, { status: 404 })
    },
  })
  try {
    const { hostname = '', port = 0 } = server
    const load = { targets: [target], connections: 1, seconds: 0.5, firstNumber }
    const figures = await generate({ hostname, port, ...load })
    return { paths, figures }
  } finally {
    await server.stop(true)
  }
}

const generators = [
  { name: 'our generator', generate: ownClosedLoop, isThere: true },
  { name: 'wrk', generate: wrkClosedLoop, isThere: isInstalled('wrk') },
].filter(({ isThere }) => isThere)

test.each(generators)('$name numbers its requests from the first on', async ({ generate }) => {
  const { paths, figures } = await pathsOf(generate, { path: '/a{number}', status: 404 }, 41)
  expect(paths.slice(0, 3)).toEqual(['/a00000041', '/a00000042', '/a00000043'])
  expect(figures.failed).toBe(0)
})

test.each(generators)('$name takes texts in turn, from the first again', async ({ generate }) => {
  using folder = new TemporaryFolder()
  const textsFile = join(folder.path, 'texts')
  writeFileSync(textsFile, 'AAAAAAAABBBBBBBBCCCCCCCC')
  const target = { path: '/{number}', textsFile, status: 404 }
  const { paths } = await pathsOf(generate, target, 1)
  expect(paths.slice(0, 4)).toEqual(['/BBBBBBBB', '/CCCCCCCC', '/AAAAAAAA', '/BBBBBBBB'])
})

test.each(generators)('$name tells a 404 from another refusal', async ({ generate }) => {
  const { figures } = await pathsOf(generate, { path: '/a', status: 429 })
  expect(figures.failed).toBe(figures.requests)
  expect(figures.requests).toBeGreaterThan(0)
})

test('a body of another length than the right one is a failure', async () => {
  const target = { path: '/a', status: 302, bodyBytes: 1 }
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: redirected })
  const { hostname = '', port = 0 } = server
  const load = { hostname, port, targets: [target], connections: 1, seconds: 0.5 }
  const figures = await closedLoop(load)
  await server.stop(true)
  expect(figures.failed).toBe(figures.requests)
})

testWith('wrk')('wrk counts all but the last request of each connection', async () => {
  const { figures, a, b } = await load(wrkClosedLoop, redirected, 1)
  expect(figures).toMatchObject({ generator: 'wrk', failed: 0 })
  expect(figures.requests).toBeLessThanOrEqual(a + b)
  expect(figures.requests).toBeGreaterThanOrEqual(a + b - CONNECTIONS)
  expect(Math.abs(a - b)).toBeLessThanOrEqual(1)
})

testWith('wrk')('wrk’s answers of 400 and more are failures', async () => {
  const { figures } = await load(wrkClosedLoop, () => new Response('', { status: 429 }), 1)
  expect(figures.failed).toBe(figures.requests)
})
