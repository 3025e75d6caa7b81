import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Answer, type TestApp, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import {
  badRequests,
  bodySchema,
  goodRequest,
  goodRequests,
  type Held,
  type Sent,
  send,
} from '../support/described-requests.ts'
import { ENDPOINTS, nameOf } from '../support/endpoints.ts'
import { addManager } from '../support/members.ts'
import { type ApiDescription, describeApi, type Operation } from '../support/openapi.ts'
import { SEED } from '../support/seed.ts'

/**
 * Random requests made from the published API description, and judged by it. The long form:
 * npm run test:durability -- fuzz
 */

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 1500)
const TIMEOUT_MS = 60_000 + REQUESTS * 100

interface Fuzzed {
  app: TestApp
  api: ApiDescription
  /** Of an account, for all of its operations. */
  key: string
  /** Links of the account, for requests that are to find something. */
  held: Held[]
  /** How often each operation has answered with each status. */
  met: Map<string, number>
}

type Check = fc.Arbitrary<(on: Fuzzed) => Promise<void>>
type Named = readonly [name: string, operation: Operation]

async function fuzzed(): Promise<Fuzzed & AsyncDisposable> {
  const app = await testApp({ env: UNLIMITED })
  const api = await describeApi(app)
  const key = addManager(app, 'enterprise')
  const held: Held[] = []
  for (const code of ['FUZZED1', 'FUZZED2', 'FUZZED3']) {
    held.push(await app.claim(code, `https://example.com/${code}`, 'enterprise'))
  }
  const dispose = () => app[Symbol.asyncDispose]()
  return { app, api, key, held, met: new Map(), [Symbol.asyncDispose]: dispose }
}

/** Sends it with what it lacks, and compares the answer with the document. Throws what is wrong. */
async function ask(
  { app, api, key, met }: Fuzzed,
  named: Named,
  { sent, held, wrong }: { sent: Sent; held: Held; wrong: (status: number) => string | undefined },
): Promise<Answer> {
  const [name, operation] = named
  const whole = {
    ...(operation.security.length > 0 && { key }),
    code: held.code,
    ...sent,
  }
  const answer = await send(app, named, whole)
  const at = `${name} ${answer.status}`
  met.set(at, (met.get(at) ?? 0) + 1)
  const fault = answer.status >= 500 ? 'the service failed' : wrong(answer.status)
  const faults = [...api.faultsOf(name, answer), ...(fault === undefined ? [] : [fault])]
  if (faults.length === 0) return answer
  const request = JSON.stringify(whole).slice(0, 1000)
  throw new Error([`${name} ${request}`, ...faults, answer.text.slice(0, 500)].join('\n  '))
}

const SPEC: ReadonlySet<string> = new Set(ENDPOINTS.map(nameOf))

const anyHeld = fc.nat(1000)
const pick = ({ held }: Fuzzed, n: number) => held[n % held.length] as Held

/** Operations in turn, with what makes a check of each. */
async function run(on: Fuzzed, checksOf: (named: Named) => Check[]) {
  const checks = fc.oneof(...[...on.api.operations].flatMap(checksOf))
  await fc.assert(
    fc.asyncProperty(checks, (check) => check(on)),
    { seed: SEED, numRuns: Math.ceil(REQUESTS / 2), endOnFailure: true },
  )
}

const GOOD_STATUSES = [200, 201, 302, 403, 404, 409]

const goodCheck = ([name, operation]: Named): Check =>
  fc.record({ sent: goodRequests(operation), n: anyHeld, isHeld: fc.boolean() }).map((one) => {
    return async (on: Fuzzed) => {
      const held = pick(on, one.n)
      const body = bodySchema(operation) && {
        ...(one.sent.body as object),
        ...(one.isHeld && /update|delete/.test(name) && held),
        // The one that each of the first codes has.
        ...(one.isHeld &&
          name === 'POST /api/shorten' && { url: `https://example.com/${held.code}` }),
      }
      if (body && !on.api.takesBody(name, body)) throw new Error('the test sent a bad body')
      const sent = { ...one.sent, body }
      const wrong = (status: number) =>
        GOOD_STATUSES.includes(status) ? undefined : 'a good request is refused'
      const answer = await ask(on, [name, operation], { sent, held, wrong })
      await remember(on, name, answer)
    }
  })

/** Keeps what was created for later requests; what was deleted must be gone for all of them. */
async function remember(on: Fuzzed, name: string, { status, body }: Answer): Promise<void> {
  const { code, passcode } = body
  if (status === 201 && typeof passcode === 'string') {
    on.held.push({ code: String(code), passcode })
  }
  if (name !== 'POST /api/delete' || status !== 200) return
  const gone = on.held.find((one) => one.code === code) as Held
  on.held = on.held.filter((one) => one !== gone)
  for (const [other, operation] of on.api.operations) {
    if (!other.includes('{code}') && !/update|delete/.test(other)) continue
    const expected = other.startsWith('POST') ? 403 : 404
    const wrong = (status: number) => (status === expected ? undefined : 'a deleted code is found')
    await ask(on, [other, operation], { sent: goodRequest(operation, gone), held: gone, wrong })
  }
  while (on.held.length < 3) {
    // A URL of its own each time: for one that the account has, no passcode would come.
    on.held.push(await on.app.shorten(`https://example.com/${Bun.randomUUIDv7()}`, 'enterprise'))
  }
}

const badChecks = ([name, operation]: Named): Check[] =>
  badRequests(operation).map((requests) =>
    fc.tuple(requests, anyHeld).map(([sent, n]) => async (on: Fuzzed) => {
      const { body } = sent
      if ('body' in sent && on.api.takesBody(name, JSON.parse(JSON.stringify(body)))) {
        throw new Error(`the test sent a good body: ${JSON.stringify(body)}`)
      }
      const wrong = (status: number) =>
        status >= 400 && status < 500 ? undefined : 'a bad request is accepted'
      await ask(on, [name, operation], { sent, held: pick(on, n), wrong })
    }),
  )

test(
  `${REQUESTS} requests as described are taken, and answered as described, seed ${SEED}`,
  async () => {
    await using on = await fuzzed()
    // Bodies and queries beyond the spec have rules that the document cannot state.
    await run(on, (named) => (SPEC.has(named[0]) ? [goodCheck(named)] : []))
    const successes = [...on.met.keys()].filter((at) => / (20[01]|302)$/.test(at))
    expect(new Set(successes.map((at) => at.replace(/ \d+$/, ''))).size).toBe(12)
  },
  TIMEOUT_MS,
)

test(
  `requests against the description are refused, and answered as described, seed ${SEED}`,
  async () => {
    await using on = await fuzzed()
    await run(on, badChecks)
    expect([...on.met.keys()].filter((at) => / [235]\d\d$/.test(at))).toEqual([])
  },
  TIMEOUT_MS,
)
