import { expect } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { Redis } from '../support/redis.ts'
import { testWith } from '../support/tools.ts'

/** Guessing passwords is as slow on several hosts as on one. */

const ANN = 'ann@example.com'
const FROM = '192.0.2.66'

async function hosts(redis: Redis) {
  const open = () => testApp({ env: { VALKEY_URL: redis.url } })
  return [await open(), await open()] as const
}

/** One guess at each host given, all at once if `atOnce`. Returns the responses. */
async function guess(apps: readonly TestApp[], { atOnce = false } = {}) {
  const post = async (app: TestApp) => {
    const visitor = new Visitor(app, { from: FROM })
    const { csrf } = await visitor.get('/app/sign-in')
    return await visitor.post('/app/sign-in', { email: ANN, password: 'a wrong guess', csrf })
  }
  if (atOnce) return await Promise.all(apps.map(post))
  const seen: Awaited<ReturnType<typeof post>>[] = []
  for (const app of apps) seen.push(await post(app))
  return seen
}

const engaged = (app: TestApp) =>
  app.log.filter((line) => line.includes('"throttle.engaged"')).map((line) => JSON.parse(line).gate)

testWith('redis')('an address has five guesses at an account on all hosts together', async () => {
  await using redis = await Redis.start()
  const [one, two] = await hosts(redis)
  await using _one = one
  await using _two = two
  const seen = await guess([one, two, one, two, one, two, one])
  expect(seen.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 429, 429])
  expect(Number(seen[5]?.headers.get('retry-after'))).toBeWithin(50, 61)
  expect([engaged(one), engaged(two)]).toEqual([['pair'], []])
})

testWith('redis')('guesses sent to both hosts at once are no more than others', async () => {
  await using redis = await Redis.start()
  const [one, two] = await hosts(redis)
  await using _one = one
  await using _two = two
  const targets = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two))
  const seen = await guess(targets, { atOnce: true })
  expect(seen.filter(({ status }) => status === 401)).toHaveLength(5)
  expect(seen.filter(({ status }) => status === 429)).toHaveLength(15)
})

testWith('redis')('sign-ins that succeed use up no guesses', async () => {
  await using redis = await Redis.start()
  const [one, two] = await hosts(redis)
  await using _one = one
  await using _two = two
  for (const app of [one, two]) await makeMember(app, ANN)
  await guess([one, two])
  for (const app of [one, two, one, two, one, two, one, two]) {
    expect((await new Visitor(app, { from: FROM }).signIn(ANN)).status).toBe(303)
  }
  const seen = await guess([one, two, one, two, one, two])
  expect(seen.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 429])
})

testWith('redis')(
  'without the server, guesses are counted per host, with those made before',
  async () => {
    await using redis = await Redis.start()
    const [one, two] = await hosts(redis)
    await using _one = one
    await using _two = two
    await guess([one, one, two])
    await redis.kill()
    const atOne = await guess([one, one, one, one])
    expect(atOne.map(({ status }) => status)).toEqual([401, 401, 401, 429])
    const atTwo = await guess([two, two, two, two, two])
    expect(atTwo.map(({ status }) => status)).toEqual([401, 401, 401, 401, 429])
  },
)
