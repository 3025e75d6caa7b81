import { expect, test } from 'bun:test'
import { inProcess } from '../../test/support/in-process.ts'
import { Thread } from '../lib/thread.ts'
import { type PasswordFunctions, Passwords } from './passwords.ts'

interface VerifyInput {
  password: string
  hash: string
}

/** A thread for which "right" fits any hash. Records its calls and how many ran at once. */
function fakeThread({ failedStarts = 0, sleep = async () => {}, begun = Promise.resolve() } = {}) {
  const asked: VerifyInput[] = []
  const seen = { away: 0, mostAway: 0, starts: 0, sleeps: [] as number[] }
  const thread = inProcess<PasswordFunctions>({
    async hash(password) {
      return password
    },
    async verify(order) {
      asked.push(order)
      seen.mostAway = Math.max(seen.mostAway, ++seen.away)
      await Promise.resolve()
      seen.away--
      return order.password === 'right'
    },
  })
  const passwords = new Passwords({
    start: async () => {
      if (++seen.starts <= failedStarts) throw new Error('no thread')
      await begun
      return thread
    },
    time: {
      monotonic: () => 0,
      sleep(ms) {
        seen.sleeps.push(ms)
        return sleep()
      },
    },
  })
  return { passwords, asked, seen }
}

const HASH = '$argon2id$v=19$m=19456,t=2,p=1$salt$hash'
const ANONYMOUS = { queue: 'anonymous', key: '192.0.2.0/24' } as const
const TRUSTED = { queue: 'trusted', key: '1' } as const
const INVITED = { queue: 'oneTimeLink', key: '1' } as const

test('an account without a password costs the same work as one with, and nothing fits it', async () => {
  const { passwords, asked } = fakeThread()
  expect(await passwords.verify('right', HASH, ANONYMOUS)).toBe(true)
  expect(await passwords.verify('right', undefined, ANONYMOUS)).toBe(false)
  expect(await passwords.verify('right', null, ANONYMOUS)).toBe(false)
  expect(asked).toHaveLength(3)
  const parameters = asked.map(({ hash }) => hash.split('$').slice(0, 4).join('$'))
  expect(new Set(parameters)).toEqual(new Set(['$argon2id$v=19$m=19456,t=2,p=1']))
})

test('one password is worked on at a time, and the thread is started at the first', async () => {
  const { passwords, asked, seen } = fakeThread()
  expect(seen.starts).toBe(0)
  await Promise.all(Array.from({ length: 40 }, () => passwords.verify('right', HASH, ANONYMOUS)))
  expect(seen).toMatchObject({ starts: 1, mostAway: 1 })
  expect(asked).toHaveLength(40)
})

test('a login flood is served ten a second, and trusted devices at once', async () => {
  const { passwords, asked, seen } = fakeThread({ sleep: () => new Promise(() => {}) })
  const flood = Array.from({ length: 20 }, () => passwords.verify('right', HASH, ANONYMOUS))
  await Promise.all(flood.slice(0, 10))
  expect(seen.sleeps).toEqual([100])
  expect(await passwords.verify('right', HASH, TRUSTED)).toBe(true)
  expect(asked).toHaveLength(11)
})

test('the result of an attempt counts for those that wait behind it', async () => {
  const { passwords, asked, seen } = fakeThread()
  let failures = 0
  const hooks = {
    before: () => {
      if (failures >= 3) throw new Error('too many')
    },
    after: (fits: boolean) => {
      if (!fits) failures++
    },
  }
  const all = await Promise.allSettled(
    Array.from({ length: 20 }, () => passwords.verify('wrong', HASH, ANONYMOUS, hooks)),
  )
  expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(17)
  expect(asked).toHaveLength(3)
  // A refused attempt takes no time of the others.
  expect(seen.sleeps).toEqual([])
})

test('beyond 128 waiting attempts, 503 says when to try again', async () => {
  const { passwords } = fakeThread()
  const all = Array.from({ length: 130 }, () => passwords.verify('right', HASH, ANONYMOUS))
  const outcomes = await Promise.allSettled(all)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused).toHaveLength(2)
  expect(refused[0]?.reason).toMatchObject({ status: 503, headers: { 'retry-after': '13' } })
  expect(await passwords.verify('right', HASH, ANONYMOUS)).toBe(true)
})

test('a composed and a decomposed letter are the same password', async () => {
  const { passwords, asked } = fakeThread()
  await passwords.verify('cafe\u0301 au lait', HASH, ANONYMOUS)
  expect(asked[0]?.password).toBe('caf\u00e9 au lait')
})

test('text that is too long to be a password is not normalized, and fits nothing', async () => {
  const { passwords, asked } = fakeThread()
  // Composing so many marks would take minutes.
  const marks = '\u0301'.repeat(200_000) + '\u0316'.repeat(200_000)
  expect(await passwords.verify(`a${marks}`, HASH, ANONYMOUS)).toBe(false)
  expect(asked[0]?.password.length).toBeLessThan(10)
  const longest = '\u1f82'.repeat(128)
  await passwords.verify(longest.normalize('NFD'), HASH, ANONYMOUS)
  expect(asked[1]?.password).toBe(longest)
})

test('a full queue of anonymous networks takes no place of trusted devices and one-time links', async () => {
  const { passwords } = fakeThread()
  const flood = Array.from({ length: 128 }, (_, i) =>
    passwords.verify('wrong', undefined, { queue: 'anonymous', key: `10.0.${i}.0/24` }),
  )
  expect(passwords.verify('wrong', undefined, ANONYMOUS)).rejects.toThrow('Many people')
  expect(await passwords.verify('right', HASH, TRUSTED)).toBe(true)
  expect(await passwords.verify('right', HASH, INVITED)).toBe(true)
  await Promise.all(flood)
})

test('an account that has taken every place loses one to another account, which is served next', async () => {
  const { passwords } = fakeThread()
  const flood = Array.from({ length: 128 }, () => passwords.verify('right', HASH, TRUSTED))
  const settled = Promise.allSettled(flood)
  expect(await passwords.verify('right', HASH, { queue: 'trusted', key: '2' })).toBe(true)
  const refused = (await settled).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(1)
})

/** Guesses as many visitors. Returns which one the thread was asked, in order, and the results. */
async function guess(visitors: readonly (readonly [network: string, link: string])[]) {
  const { passwords, asked } = fakeThread()
  const all = visitors.map(([key, link]) =>
    passwords.verify('wrong', `${key} ${link}`, { queue: 'visitor', key, link }),
  )
  const results = await Promise.allSettled(all)
  return { order: asked.map(({ hash }) => hash), results: results.map(({ status }) => status) }
}

const many = (count: number) => Array.from({ length: count }, (_, n) => String(n))
const OTHER = ['other network', 'other link'] as const

test.each([
  ['many networks that guess at one link', many(16).map((n) => [n, 'link'] as const)],
  ['one network that guesses at many links', many(16).map((n) => ['network', n] as const)],
  ['several that guess at several', many(64).map((n) => [n.slice(-1), n.slice(0, 1)] as const)],
])('%s delay no other network and link', async (_, attack) => {
  const { order, results } = await guess([...attack, OTHER])
  expect(order.indexOf('other network other link')).toBeLessThanOrEqual(10)
  expect(new Set(results)).toEqual(new Set(['fulfilled']))
})

test('of the guesses at a link, those of a network that has made others wait behind', async () => {
  const { order } = await guess([...Array(3).fill(['a', 'link']), ['b', 'link']])
  expect(order).toEqual(['a link', 'b link', 'a link', 'a link'])
})

test('however many networks guess at one link, another link has a place', async () => {
  const { order, results } = await guess([...many(900).map((n) => [n, 'link'] as const), OTHER])
  expect(results.filter((status) => status === 'rejected')).toHaveLength(900 - 127)
  expect(order.indexOf('other network other link')).toBeLessThanOrEqual(2)
})

test('if the thread ends, the next password starts a new one, except while the service closes', async () => {
  const workers: Worker[] = []
  const passwords = new Passwords({
    start: () => {
      const worker = new Worker(new URL('../threads/passwords.ts', import.meta.url))
      workers.push(worker)
      return Thread.start<PasswordFunctions>(worker, {}, { batchMax: 1, queueMax: 10 })
    },
  })
  const hash = await passwords.hash('seven purple otters', ANONYMOUS)
  const ended = new Promise((resolve) => workers[0]?.addEventListener('close', resolve))
  workers[0]?.terminate()
  await ended
  expect(await passwords.verify('seven purple otters', hash, ANONYMOUS)).toBe(true)
  expect(workers).toHaveLength(2)
  await passwords.close()
  expect(passwords.verify('seven purple otters', hash, ANONYMOUS)).rejects.toThrow('stopping')
  expect(workers).toHaveLength(2)
})

test('a password that waits for its thread to start is refused when the service closes', async () => {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { passwords, asked, seen } = fakeThread({ begun })
  const verified = passwords.verify('right', HASH, ANONYMOUS)
  await Bun.sleep(0)
  expect(seen.starts).toBe(1)
  const closed = passwords.close()
  begin()
  expect(verified).rejects.toThrow('stopping')
  await Promise.allSettled([verified, closed])
  expect(asked).toEqual([])
})

test('an anonymous browser and a trusted device that come first share one thread', async () => {
  const { passwords, seen } = fakeThread()
  await Promise.all([passwords.hash('one', ANONYMOUS), passwords.hash('other', TRUSTED)])
  expect(seen.starts).toBe(1)
})

test('a thread that could not start is started at the next password', async () => {
  const { passwords, seen } = fakeThread({ failedStarts: 1 })
  expect(passwords.verify('right', HASH, ANONYMOUS)).rejects.toThrow('no thread')
  expect(await passwords.verify('right', HASH, ANONYMOUS)).toBe(true)
  expect(seen.starts).toBe(2)
})
