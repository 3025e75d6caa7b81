import { expect, test } from 'bun:test'
import type { Passwords, Requester } from './passwords.ts'
import { SecretHasher } from './secrets.ts'
import { signIn } from './sign-in.ts'
import type { AccountStore } from './store.ts'
import { type Attempt, type Gate, Throttle } from './throttle.ts'

/** Records the attempts that are counted. */
class Recorder extends Throttle {
  readonly counted: Attempt[] = []
  override count(attempts: readonly Attempt[]): Gate[] {
    this.counted.push(...attempts)
    return []
  }
}

interface VerifyHooks {
  after: (fits: boolean) => void
}

const asked: Requester[] = []

async function fail(email: string, address = '192.0.2.1'): Promise<Attempt[]> {
  const throttle = new Recorder(() => 0, { signUpsPerDay: 500 })
  const accounts = { findByEmail: () => undefined } as unknown as AccountStore
  const passwords = {
    async verify(_: string, __: unknown, by: Requester, { after }: VerifyHooks) {
      asked.push(by)
      after(false)
      return false
    },
  } as unknown as Passwords
  const deps = {
    data: { accounts },
    passwords,
    throttle,
    hasher: new SecretHasher(Buffer.alloc(32)),
  }
  await signIn(deps, { email, password: 'x', address, deviceToken: undefined })
  return throttle.counted
}

test('the keys of the throttle are short, however long the e-mail address that was sent', async () => {
  const counted = await fail('a'.repeat(15_000))
  expect(counted.map(({ gate }) => gate)).toEqual(['pair', 'address', 'network', 'account'])
  for (const { key } of counted) expect(key.length).toBeLessThan(100)
})

test('an address is one account’s in any letter case, and differs from every other', async () => {
  const keys = async (email: string) => (await fail(email)).map(({ key }) => key)
  expect(await keys('Ann@Example.com')).toEqual(await keys('ann@example.com'))
  expect(await keys('ann@example.com')).not.toEqual(await keys('bob@example.com'))
})

test.each([
  ['198.51.100.7', '198.51.100.0/24'],
  ['2001:db8:7:abcd::/64', '2001:db8:7::/48'],
  ['unknown', 'unknown'],
])(
  'a failure from %s counts for %s too, and waits in the queue of that network',
  async (from, network) => {
    const counted = await fail('ann@example.com', from)
    expect(counted).toContainEqual({ gate: 'network', key: network })
    expect(asked.at(-1)).toEqual({ queue: 'anonymous', key: network })
  },
)
