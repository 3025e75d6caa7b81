import { expect, test } from 'bun:test'
import { ownClosedLoop } from './closed-loop.ts'
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

test.skipIf(!isInstalled('wrk'))(
  'wrk counts all but the last request of each connection',
  async () => {
    const { figures, a, b } = await load(wrkClosedLoop, redirected, 1)
    expect(figures).toMatchObject({ generator: 'wrk', failed: 0 })
    expect(figures.requests).toBeLessThanOrEqual(a + b)
    expect(figures.requests).toBeGreaterThanOrEqual(a + b - CONNECTIONS)
    expect(Math.abs(a - b)).toBeLessThanOrEqual(1)
  },
)

test.skipIf(!isInstalled('wrk'))('wrk’s answers of 400 and more are failures', async () => {
  const { figures } = await load(wrkClosedLoop, () => new Response('', { status: 429 }), 1)
  expect(figures.failed).toBe(figures.requests)
})
