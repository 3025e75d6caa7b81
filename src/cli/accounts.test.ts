import { expect, test } from 'bun:test'
import { administrationOf } from '../../test/support/administration.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { findAccount, issueKey } from '../accounts/keys.ts'
import type { KeyScope } from '../accounts/store.ts'
import { HOUR } from '../lib/clock.ts'
import { createAccount, createKey, listAccounts, revoke, rotate, setupLink } from './accounts.ts'
import { PAGE } from './administration.ts'
import { CommandError } from './errors.ts'

const EMAIL = 'ann@example.com'
const KEY = { email: EMAIL, now: false, json: true }

/** An account with the keys `Default` and those named. */
async function open(path: string, ...more: [name: string, scope: KeyScope][]) {
  let now = Date.UTC(2026, 2, 1)
  const deps = { ...administrationOf(path, () => now), keyUses: { note() {} } }
  const { db, accounts } = deps
  const keys = new Map([['Default', keyIn(await createAccount(deps, { ...KEY, plan: 'free' }))]])
  for (const [name, scope] of more) {
    const { key, stored } = issueKey(deps, { name, scope })
    accounts.addKey(1, stored, now)
    keys.set(name, key)
  }
  return {
    deps,
    scopeOf: (key = '') => findAccount(deps, key)?.keyScope,
    /** Which of the first keys work, by name. */
    working: () => [...keys].filter(([, key]) => findAccount(deps, key)).map(([name]) => name),
    advance: (ms: number) => {
      now += ms
    },
    [Symbol.dispose]: () => db.close(),
  }
}

const keyIn = (json: string): string => JSON.parse(json).api_key

test('with several keys, rotate and revoke change nothing without --name and list the names', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path, ['Shop', 'read'], ['Blog', 'write'])
  for (const change of [rotate, revoke]) {
    const run = () => change(account.deps, { ...KEY, now: true })
    await expect(run()).rejects.toThrow(CommandError)
    await expect(run()).rejects.toThrow(
      `${EMAIL} has 3 keys. Choose one with --name: Blog, Shop, Default`,
    )
  }
  expect(account.working()).toEqual(['Default', 'Shop', 'Blog'])
})

test.each([
  ['shop', 24 * HOUR, ['Default', 'Blog']],
  ['Default', 24 * HOUR, ['Shop', 'Blog']],
])('key revoke --name %s lets that key alone expire', async (name, ms, left) => {
  using folder = temporaryFolder()
  using account = await open(folder.path, ['Shop', 'read'], ['Blog', 'write'])
  await revoke(account.deps, { ...KEY, name })
  account.advance(ms - 1)
  expect(account.working()).toHaveLength(3)
  account.advance(1)
  expect(account.working()).toEqual(left)
})

test('key rotate --name --now ends that key and all that it replaced, and keeps its access', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path, ['Shop', 'read'])
  const second = keyIn(await rotate(account.deps, { ...KEY, name: 'Shop' }))
  expect(account.working()).toEqual(['Default', 'Shop'])
  const third = keyIn(await rotate(account.deps, { ...KEY, name: 'Shop', now: true }))
  expect(account.working()).toEqual(['Default'])
  expect([second, third].map(account.scopeOf)).toEqual([undefined, 'read'])
})

test('key create adds a key with its access, which rotate keeps', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path)
  const { deps } = account
  const page = { ...KEY, name: 'Page', scope: 'create' as const }
  const origins = ['https://shop.example']
  const created = keyIn(await createKey(deps, { ...page, perMinute: 5, origins }))
  const plain = keyIn(await createKey(deps, { ...page, name: 'Plain' }))
  const rotated = keyIn(await rotate(deps, { ...KEY, name: 'Page' }))
  const limits = [created, plain, rotated].map((key) => {
    const { keyScope, perMinute, origins } = findAccount(deps, key) ?? {}
    return { keyScope, perMinute, origins }
  })
  const own = { keyScope: 'create', perMinute: 5, origins } as const
  expect(limits).toEqual([own, { ...own, perMinute: 60, origins: [] }, own])
  await expect(createKey(deps, page)).rejects.toThrow('has this name already')
  const manager = createKey(deps, { ...KEY, name: 'Robot', scope: 'manage', perMinute: 5 })
  await expect(manager).rejects.toThrow('--scope create')
})

test('key revoke ends a key in 24 hours, or with --now at once', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path, ['Shop', 'read'])
  await revoke(account.deps, { email: EMAIL, name: 'Shop' })
  expect(account.working()).toEqual(['Default', 'Shop'])
  await revoke(account.deps, { email: EMAIL, name: 'Default', now: true })
  expect(account.working()).toEqual(['Shop'])
})

test('account list --json prints an object per account', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path)
  const BEN = 'ben@example.com'
  await createAccount(account.deps, { email: BEN, plan: 'pro' })
  const lines = listAccounts(account.deps, { json: true }).text.split('\n')
  const about = { links: 0, created_at: '2026-03-01T00:00:00.000Z' }
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { account_id: 1, email: EMAIL, name: EMAIL, plan: 'free', ...about },
    { account_id: 2, email: BEN, name: BEN, plan: 'pro', ...about },
  ])
})

test('a name that no key has is refused with those that there are', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path)
  const run = () => revoke(account.deps, { ...KEY, name: 'Shop' })
  await expect(run()).rejects.toThrow(`${EMAIL} has no key with the name Shop. Its keys: Default`)
  await revoke(account.deps, KEY)
  await expect(run()).rejects.toThrow('It has no active key.')
})

test('a list of accounts comes in pages, each account once', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path)
  account.deps.db.run(`
    INSERT INTO accounts (name, plan, created_at)
    WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ${PAGE + 1})
    SELECT i || '@example.com', 'free', 0 FROM n`)
  const first = listAccounts(account.deps, { json: true })
  expect(first.next).toBe(PAGE)
  const last = listAccounts(account.deps, { json: true, after: PAGE })
  expect(last.next).toBeUndefined()
  const ids = `${first.text}\n${last.text}`.split('\n').map((line) => JSON.parse(line).account_id)
  expect(ids).toEqual(Array.from({ length: PAGE + 1 }, (_, at) => at + 1))
  expect(listAccounts(account.deps, { json: true, after: PAGE + 1 })).toEqual({ text: '' })
})

test('setup-link is refused where there is an owner, unless another is wanted', async () => {
  using folder = temporaryFolder()
  using account = await open(folder.path)
  const { deps } = account
  const link = () => setupLink(deps, { another: false, json: false })
  expect(await link()).toContain('https://hop.test/app/setup/')
  deps.accounts.changePerson(1, { isOwner: 1 })
  await expect(link()).rejects.toThrow(`${EMAIL} is the owner already.`)
  expect(await setupLink(deps, { another: true, json: false })).toContain('/app/setup/')
  deps.accounts.change(1, { disabledAt: 1 })
  expect(await link()).toContain('/app/setup/')
})

test('a command rotates no key of an account with 40 keys that work', async () => {
  using folder = temporaryFolder()
  const names = Array.from({ length: 39 }, (_, n): [string, KeyScope] => [`Key ${n}`, 'read'])
  using account = await open(folder.path, ...names)
  const run = () => rotate(account.deps, { ...KEY, name: 'Default' })
  await expect(run()).rejects.toMatchObject({ code: 'too_many_keys' })
  expect(account.working()).toHaveLength(40)
})
