import { expect, spyOn, test } from 'bun:test'
import { AllowedHosts } from '../outgoing/addresses.ts'
import { type OutgoingRequest, type Resolver, Sender } from '../outgoing/sender.ts'
import { checkDestination } from './verdict.ts'

/** Checks against a real server. Names under `.test` lead to it, all others nowhere. */

const INSIDE = '10.0.0.5'

function setUp(answer: (request: Request) => Response) {
  const seen: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      seen.push(`${request.method} ${new URL(request.url).pathname}`)
      return answer(request)
    },
  })
  const resolve: Resolver = async (name) => {
    if (name === 'inside.test') return [INSIDE]
    if (name === 'none.test') throw new Error('no_such_name')
    if (name === 'silent.test') throw new Error('EAI_AGAIN')
    return ['127.0.0.1']
  }
  const sender = new Sender({ hosts: new AllowedHosts(['127.0.0.0/8']), resolve })
  const sent: OutgoingRequest[] = []
  const options = {
    sender: {
      send(request: OutgoingRequest) {
        sent.push(request)
        // The only server of the test is inside.
        return sender.send({ ...request, isPublicOnly: false })
      },
    },
    userAgent: 'Hopcode/1.1.0 (+http://hop.test/-/checker)',
    isOwnHost: (hostname: string) => hostname === 'hop.test',
  }
  return {
    seen,
    sent,
    check: (path: string, host = 'shop.test') =>
      checkDestination(`http://${host}:${server.port}${path}`, options),
    port: server.port,
    async [Symbol.asyncDispose]() {
      sender.close()
      await server.stop(true)
    },
  }
}

const statusIn = ({ url }: Request) => Number(/\/(\d{3})$/.exec(url)?.[1] ?? 200)

test.each([
  [200, 'alive'],
  [204, 'alive'],
  [404, 'failed'],
  [410, 'failed'],
  [400, 'unknown'],
  [401, 'unknown'],
  [403, 'unknown'],
  [405, 'unknown'],
  [429, 'unknown'],
  [451, 'unknown'],
  [500, 'unknown'],
  [503, 'unknown'],
] as const)('a destination that answers %i is %s', async (status, outcome) => {
  await using site = setUp((request) => new Response(null, { status: statusIn(request) }))
  expect(await site.check(`/${status}`)).toEqual({ outcome, status: String(status) })
  expect(site.sent.every(({ isPublicOnly }) => isPublicOnly === true)).toBe(true)
})

test.each([403, 404, 405, 500, 501])(
  'a page whose HEAD is answered with %i is asked for with GET',
  async (status) => {
    await using site = setUp(({ method }) =>
      method === 'HEAD' ? new Response(null, { status }) : new Response('x'.repeat(100_000)),
    )
    expect(await site.check('/page')).toMatchObject({ outcome: 'alive', status: '200' })
    expect(site.seen).toEqual(['HEAD /page', 'GET /page'])
  },
)

test('the checker says who it is, and asks a page that answers once', async () => {
  const agents: (string | null)[] = []
  await using site = setUp(({ headers }) => {
    agents.push(headers.get('user-agent'))
    return new Response('here')
  })
  await site.check('/page')
  expect(site.seen).toEqual(['HEAD /page'])
  expect(agents).toEqual(['Hopcode/1.1.0 (+http://hop.test/-/checker)'])
})

test.each([
  ['none.test', 'failed', 'no_such_name'],
  ['silent.test', 'unknown', 'connection_failed'],
  ['inside.test', 'unknown', 'address_not_allowed'],
  ['hop.test', 'unknown', 'own_address'],
] as const)('the host %s makes a check %s', async (host, outcome, status) => {
  await using site = setUp(() => new Response('here'))
  expect(await site.check('/', host)).toEqual({ outcome, status })
  expect(site.seen).toEqual([])
})

test.each([
  ['http://inside.test/', 'address_not_allowed'],
  ['http://10.0.0.5/', 'address_not_allowed'],
  ['http://hop.test/ABCDEF', 'own_address'],
  ['file:///etc/passwd', 'bad_redirect'],
  ['http://', 'bad_redirect'],
])('a redirect to %s is not followed, and is no failure', async (location, status) => {
  await using site = setUp(() => new Response(null, { status: 302, headers: { location } }))
  expect(await site.check('/start')).toEqual({ outcome: 'unknown', status })
  expect(site.seen).toEqual(['HEAD /start'])
})

test.each([
  [5, { outcome: 'failed', status: '404' }],
  [6, { outcome: 'unknown', status: 'too_many_redirects' }],
] as const)('of %i redirects, five are followed', async (redirects, finding) => {
  await using site = setUp(({ url }) => {
    const at = Number(/\d+$/.exec(new URL(url).pathname)?.[0])
    const headers = { location: `/${at + 1}` }
    return at < redirects
      ? new Response(null, { status: 301, headers })
      : new Response(null, { status: 404 })
  })
  expect(await site.check('/0')).toEqual(finding)
})

test('a whole check has 20 seconds, its waits for slots included', async () => {
  let now = 0
  const sent: number[][] = []
  const sender = {
    async send({ slotMs = 0, timeoutMs }: OutgoingRequest) {
      sent.push([slotMs, timeoutMs])
      // It waits for its slot too.
      now += 8000
      return { ok: true, status: 302, headers: { location: '/next' }, ms: 1 } as const
    },
  }
  using _ = spyOn(performance, 'now').mockImplementation(() => now)
  const options = { sender, userAgent: 'Hopcode', isOwnHost: () => false }
  const finding = await checkDestination('https://slow.example/', options)
  expect(finding).toEqual({ outcome: 'unknown', status: 'timeout' })
  expect(sent).toEqual([
    [20_000, 10_000],
    [12_000, 10_000],
    [4000, 4000],
  ])
})
