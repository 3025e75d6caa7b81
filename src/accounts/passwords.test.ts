import { expect, test } from 'bun:test'
import { Thread } from '../lib/thread.ts'
import type { PasswordFunctions } from './password-hash.ts'
import { judgePassword, Passwords } from './passwords.ts'

interface Order {
  password: string
  hash: string
}

/** A thread that fits "right" with any hash, and tells what it was asked and how many at once. */
function fakeThread({ failedStarts = 0, rest = async () => {}, begun = Promise.resolve() } = {}) {
  const asked: Order[] = []
  const seen = { away: 0, mostAway: 0, starts: 0, rests: [] as number[] }
  const thread = Thread.inProcess<PasswordFunctions>({
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
      rest(ms) {
        seen.rests.push(ms)
        return rest()
      },
    },
  })
  return { passwords, asked, seen }
}

const HASH = '$argon2id$v=19$m=19456,t=2,p=1$salt$hash'
const ANONYMOUS = { queue: 'anonymous', key: '192.0.2.0/24' } as const
const KNOWN = { queue: 'known', key: '1' } as const
const INVITED = { queue: 'oneTimeLink', key: '1' } as const

test.each([
  ['1234567', 'at least 8'],
  ['水'.repeat(7), 'at least 8'],
  ['x'.repeat(129), 'at most 128'],
  ['password', 'most common'],
  ['12345678', 'most common'],
  ['IloveYou', 'most common'],
  ['trustno1', 'most common'],
])('%j is refused: %s', (password, says) => {
  expect(judgePassword(password)).toContain(says)
})

test.each(['seven purple otters', '水火'.repeat(4), '🦆🐝'.repeat(64), 'x9'.repeat(64)])(
  '%j is good enough',
  (password) => expect(judgePassword(password)).toBeUndefined(),
)

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

test('a crowd comes in ten a second, at once those that are known', async () => {
  const { passwords, asked, seen } = fakeThread({ rest: () => new Promise(() => {}) })
  const crowd = Array.from({ length: 20 }, () => passwords.verify('right', HASH, ANONYMOUS))
  await Promise.all(crowd.slice(0, 10))
  expect(seen.rests).toEqual([100])
  expect(await passwords.verify('right', HASH, KNOWN)).toBe(true)
  expect(asked).toHaveLength(11)
})

test('what one attempt teaches counts for those that were waiting behind it', async () => {
  const { passwords, asked, seen } = fakeThread()
  let failures = 0
  const turn = {
    before: () => {
      if (failures >= 3) throw new Error('too many')
    },
    after: (fits: boolean) => {
      if (!fits) failures++
    },
  }
  const all = await Promise.allSettled(
    Array.from({ length: 20 }, () => passwords.verify('wrong', HASH, ANONYMOUS, turn)),
  )
  expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(17)
  expect(asked).toHaveLength(3)
  // Who is refused takes nobody's time.
  expect(seen.rests).toEqual([])
})

test('more than 128 at the door are asked to come again, with a time', async () => {
  const { passwords } = fakeThread()
  const all = Array.from({ length: 130 }, () => passwords.verify('right', HASH, ANONYMOUS))
  const outcomes = await Promise.allSettled(all)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused).toHaveLength(2)
  expect(refused[0]?.reason).toMatchObject({ status: 503, headers: { 'retry-after': '13' } })
  expect(await passwords.verify('right', HASH, ANONYMOUS)).toBe(true)
})

test('a letter typed in pieces is the same password', async () => {
  const { passwords, asked } = fakeThread()
  await passwords.verify('cafe\u0301 au lait', HASH, ANONYMOUS)
  expect(asked[0]?.password).toBe('caf\u00e9 au lait')
})

test('text that is too long to be a password is not put in composed form, and fits nothing', async () => {
  const { passwords, asked } = fakeThread()
  // Composing so many marks would take minutes.
  const marks = '\u0301'.repeat(200_000) + '\u0316'.repeat(200_000)
  expect(await passwords.verify(`a${marks}`, HASH, ANONYMOUS)).toBe(false)
  expect(asked[0]?.password.length).toBeLessThan(10)
  const longest = '\u1f82'.repeat(128)
  await passwords.verify(longest.normalize('NFD'), HASH, ANONYMOUS)
  expect(asked[1]?.password).toBe(longest)
})

test('a full queue of anonymous networks takes no place of known browsers and one-time links', async () => {
  const { passwords } = fakeThread()
  const flood = Array.from({ length: 128 }, (_, i) =>
    passwords.verify('wrong', undefined, { queue: 'anonymous', key: `10.0.${i}.0/24` }),
  )
  expect(passwords.verify('wrong', undefined, ANONYMOUS)).rejects.toThrow('Many people')
  expect(await passwords.verify('right', HASH, KNOWN)).toBe(true)
  expect(await passwords.verify('right', HASH, INVITED)).toBe(true)
  await Promise.all(flood)
})

test('a member who has taken every place gives one up, and another member is served next', async () => {
  const { passwords } = fakeThread()
  const flood = Array.from({ length: 128 }, () => passwords.verify('right', HASH, KNOWN))
  const settled = Promise.allSettled(flood)
  expect(await passwords.verify('right', HASH, { queue: 'known', key: '2' })).toBe(true)
  const refused = (await settled).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(1)
})

test('should the thread end, the next password has a new one, but for a service that closes', async () => {
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

test('a stranger and somebody known who come first share one thread', async () => {
  const { passwords, seen } = fakeThread()
  await Promise.all([passwords.hash('one', ANONYMOUS), passwords.hash('other', KNOWN)])
  expect(seen.starts).toBe(1)
})

test('a thread that could not start is started at the next password', async () => {
  const { passwords, seen } = fakeThread({ failedStarts: 1 })
  expect(passwords.verify('right', HASH, ANONYMOUS)).rejects.toThrow('no thread')
  expect(await passwords.verify('right', HASH, ANONYMOUS)).toBe(true)
  expect(seen.starts).toBe(2)
})
