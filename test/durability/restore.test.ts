import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  binary,
  command,
  makeAccount,
  Service,
  type Settings,
  unlimited,
} from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { testWith } from '../support/tools.ts'
import { AS_NOBODY, giveToNobody } from './lib/nobody.ts'

/** A restore that is interrupted, and whose files it leaves. The compiled program, from outside. */

/** Restores that are killed. The long form: npm run test:durability -- restore */
const KILLS = Number(process.env.RESTORE_ROUNDS ?? 4)

async function run(args: readonly string[], env: Settings): Promise<void> {
  const { code, err } = await command(args, env)
  expect({ code, err }).toEqual({ code: 0, err: '' })
}

test(
  'kill -9 at any moment of a restore leaves the old state or the new one, whole',
  async () => {
    using folder = temporaryFolder()
    const path = (name: string) => join(folder.path, name)
    const env = (name: string) => unlimited(path(name))
    const makeState = async (name: string, plan: string) => {
      await makeAccount(env(name), plan)
      await using service = await Service.start(env(name))
      await service.end('SIGTERM')
    }
    await makeState('old', 'free')
    await makeState('new', 'pro')
    const file = path('new.hopcode')
    await run(['backup', file], env('new'))
    const seen = new Set<string>()
    const program = await binary()
    const restoreKilledAfter = async (ms: number) => {
      cpSync(path('old'), path('data'), { recursive: true })
      const child = Bun.spawn([program, 'restore', file], {
        env: env('data'),
        stdout: 'ignore',
        stderr: 'ignore',
      })
      await Promise.race([child.exited, Bun.sleep(ms)])
      child.kill('SIGKILL')
      await child.exited
      const checked = await command(['check'], env('data'))
      expect(checked.out).toEndWith('All is well.\n')
      const { plan } = JSON.parse((await command(['account', 'list', '--json'], env('data'))).out)
      const state = plan === 'pro' ? 'new' : 'old'
      const key = readFileSync(join(path('data'), 'secret.key'), 'utf8')
      expect(key).toBe(readFileSync(join(path(state), 'secret.key'), 'utf8'))
      seen.add(state)
      rmSync(path('data'), { recursive: true })
    }
    const start = performance.now()
    await restoreKilledAfter(60_000)
    const whole = performance.now() - start
    expect([...seen]).toEqual(['new'])
    for (let round = 0; round < KILLS; round++) await restoreKilledAfter(Math.random() * whole)
    await restoreKilledAfter(0)
    expect([...seen].sort()).toEqual(['new', 'old'])
  },
  60_000 + KILLS * 5000,
)

test('any command, and a start, first carries out a restore that was decided', async () => {
  for (const isStart of [false, true]) {
    using folder = temporaryFolder()
    const env = unlimited(join(folder.path, 'data'))
    const other = unlimited(join(folder.path, 'other'))
    await makeAccount(env, 'free')
    const key = await makeAccount(other, 'pro')
    const decided = join(folder.path, 'data', '.restore-decided')
    mkdirSync(decided)
    for (const name of ['hopcode.db', 'secret.key']) {
      cpSync(join(folder.path, 'other', name), join(decided, name))
    }
    writeFileSync(join(decided, 'aside'), 'before-restore-1')
    if (isStart) {
      await using service = await Service.start(env)
      await service.shorten(key, 'https://example.com/decided')
    } else {
      const listed = await command(['account', 'list'], env)
      expect(listed.out).toContain('pro@example.com')
      expect(listed.err).toContain('was completed')
    }
    expect(existsSync(decided)).toBe(false)
  }
})

testWith('root')('what root restores belongs to the owner of the folder', async () => {
  using folder = temporaryFolder()
  const env = unlimited(join(folder.path, 'data'))
  const file = join(folder.path, 'owner.hopcode')
  const key = await makeAccount(env)
  await run(['backup', file], env)
  rmSync(join(folder.path, 'data'), { recursive: true })
  mkdirSync(join(folder.path, 'data'))
  giveToNobody(folder.path)
  await run(['restore', file], env)
  await using service = await Service.start(env, AS_NOBODY)
  expect(await service.shorten(key, 'https://example.com/owner')).toHaveLength(8)
})

test('after a restore everybody signs in anew, and no one-time link of the backup opens', async () => {
  using folder = temporaryFolder()
  const env = unlimited(join(folder.path, 'data'))
  const other = unlimited(join(folder.path, 'other'))
  await makeAccount(env)
  await run(['account', 'setup-link'], env)
  const count = (dataDir: string, change = '') => {
    using db = new Database(join(dataDir, 'hopcode.db'))
    if (change) db.run(change)
    const sql =
      'SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM one_time_links) AS n'
    return db.query<{ n: number }, []>(sql).get()?.n
  }
  const session = `INSERT INTO sessions (hash, account_id, created_at, seen_at, address, agent)
    VALUES (x'00', 1, 1, 1, '', '')`
  expect(count(String(env.DATA_DIR), session)).toBe(2)
  const file = join(folder.path, 'backup.hopcode')
  await run(['backup', file], env)
  await run(['restore', file], other)
  expect(count(String(other.DATA_DIR))).toBe(0)
})

test('a copy that another program made is restored from standard input, and no time is claimed for it', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  await makeAccount(env)
  const copy = `${folder.path}.db`
  using db = new Database(join(folder.path, 'hopcode.db'))
  db.run(`VACUUM INTO '${copy}'`)
  db.close()
  const child = Bun.spawn([await binary(), 'restore', '-'], { env, stdin: Bun.file(copy) })
  const out = await new Response(child.stdout).text()
  rmSync(copy)
  expect([await child.exited, out]).toEqual([0, expect.stringContaining('1 account')])
  expect(out).not.toMatch(/\b19\d\d-|as of/)
})

test('a start removes what a killed restore left, and a check mentions it', async () => {
  using folder = temporaryFolder()
  const env = unlimited(folder.path)
  await makeAccount(env)
  const left = join(folder.path, '.restore-unfinished')
  mkdirSync(left)
  writeFileSync(join(left, 'secret.key'), 'a secret')
  const checked = await command(['check'], env)
  expect([checked.code, checked.out]).toEqual([0, expect.stringContaining('.restore-unfinished')])
  await using service = await Service.start(env)
  expect(existsSync(left)).toBe(false)
  expect((await service.fetch('/-/ready')).status).toBe(200)
})

test('a database that another program copied is restored with the key of the folder', async () => {
  using folder = temporaryFolder()
  const env = unlimited(join(folder.path, 'data'))
  const key = await makeAccount(env)
  let code = ''
  {
    await using service = await Service.start(env)
    code = await service.shorten(key, 'https://example.com/copied')
    await service.end('SIGTERM')
  }
  const copy = join(folder.path, 'copy.db')
  cpSync(join(folder.path, 'data', 'hopcode.db'), copy)
  const other = unlimited(join(folder.path, 'other'))
  const refused = await command(['restore', copy], other)
  expect([refused.code, refused.err]).toEqual([
    1,
    expect.stringContaining('contains no secret key'),
  ])
  cpSync(join(folder.path, 'data', 'secret.key'), join(folder.path, 'other', 'secret.key'))
  await run(['restore', copy], other)
  await using restored = await Service.start(other)
  expect((await restored.fetch(`/${code}`)).status).toBe(302)
  expect(await restored.shorten(key, 'https://example.com/new')).toHaveLength(8)
  expect(await restored.end('SIGTERM')).toBe(0)
  expect(await restored.errors).not.toContain('journal')
})

test('what is no backup is refused with one line that says so', async () => {
  using folder = temporaryFolder()
  const env = unlimited(join(folder.path, 'data'))
  mkdirSync(join(folder.path, 'data'))
  const refusals = [
    { file: '/dev/null', says: 'is not a backup of Hopcode.' },
    { file: folder.path, says: 'is a folder, not a backup' },
    { file: join(folder.path, 'none'), says: 'is missing' },
  ]
  for (const { file, says } of refusals) {
    const { code, err } = await command(['restore', file], env)
    expect({ code, lines: err.trimEnd().split('\n').length }).toEqual({ code: 1, lines: 1 })
    expect(err).toStartWith(`hopcode: ${file} ${says}`)
  }
})
