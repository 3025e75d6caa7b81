import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** A refusal is one line that names the reason, and printed links have the right host. */

const CREATE = ['account', 'create', '--email', 'b@example.com', '--plan', 'free']

function expectOneLine({ code, out, err }: { code: number | null; out: string; err: string }) {
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toStartWith('hopcode: ')
  expect(err.trimEnd()).not.toContain('\n')
}

test('while another program holds the write lock, a command says so in one line', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await makeAccount(env)
  using db = new Database(join(folder.path, 'hopcode.db'))
  db.run('BEGIN IMMEDIATE')
  const refused = await Promise.all([
    command(CREATE, env),
    command(['maintenance', 'on', '--until', '30m'], env),
  ])
  for (const finished of refused) {
    expectOneLine(finished)
    expect(finished.err).toContain('another program has locked the database')
  }
  db.run('ROLLBACK')
  expect(await command(CREATE, env)).toMatchObject({ code: 0 })
})

test.each([25, 63])(
  'a start with %i file descriptors ends with one line that says so',
  async (most) => {
    using folder = temporaryFolder()
    const env = { DATA_DIR: folder.path, PORT: '0', BASE_URL: 'http://hop.test' }
    await makeAccount(env)
    const limited = ['sh', '-c', `ulimit -n ${most} && exec "$@"`, 'sh']
    const refused = await command(['serve'], env, limited)
    expectOneLine(refused)
    expect(refused.err).toContain(`Only ${most} files`)
  },
)

const ON_DATA = [
  ['account', 'list'],
  ['account', 'set-plan', '--email', 'a@example.com', '--plan', 'pro'],
  ['account', 'reset-password', '--email', 'a@example.com'],
  ['account', 'disable', '--email', 'a@example.com'],
  ['link', 'disabled'],
  ['link', 'enable', 'SPRING26'],
  ['key', 'rotate', '--email', 'a@example.com'],
  ['maintenance', 'status'],
  ['maintenance', 'on', '--until', '30m'],
  ['backup', '/tmp/hopcode-never-written'],
]
test('with a mistyped DATA_DIR a command says so, and creates nothing', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'tpyo') }
  for (const args of ON_DATA) {
    const finished = await command(args, env)
    expectOneLine(finished)
    expect(finished.err).toContain('hopcode.db is missing')
    expect(finished.err).toContain('Is DATA_DIR right?')
  }
  expect(existsSync(env.DATA_DIR)).toBe(false)
  // A folder of another program.
  writeFileSync(join(folder.path, 'notes.txt'), 'mine')
  expectOneLine(await command(['account', 'list'], { DATA_DIR: folder.path }))
  expect(readdirSync(folder.path)).toEqual(['notes.txt'])
})

test('a mistyped command ends with exit code 2, and explains what there is', async () => {
  using folder = temporaryFolder()
  const mistyped = [
    ['acount', 'list'],
    ['account'],
    ['account', 'create', '--mail', 'x'],
    ['account', 'create', '--email', 'a@example.com', '--plan', 'gold'],
    ['help', 'frobnicate'],
  ]
  for (const args of mistyped) {
    const { code, out, err } = await command(args, { DATA_DIR: folder.path })
    expect({ args, code, out }).toEqual({ args, code: 2, out: '' })
    expect(err).toContain('hopcode ')
  }
  expect(readdirSync(folder.path)).toEqual([])
})

const UNREACHABLE = [
  { args: ['health'], says: 'http://127.0.0.1:1/-/ready does not answer' },
  { args: ['qr', 'SPRING26', '--out', '-'], says: 'localhost:1 does not answer' },
]
test.each(UNREACHABLE)('without a service, $args names its address', async ({ args, says }) => {
  using folder = temporaryFolder()
  const finished = await command(args, { DATA_DIR: join(folder.path, 'none'), PORT: '1' })
  expectOneLine(finished)
  expect(finished.err).toContain(says)
})

test('help explains each command and lists each setting, without a data folder', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'none'), PORT: 'not a port' }
  const overview = await command(['help'], env)
  expect(overview).toMatchObject({ code: 0, err: '' })
  const listed = overview.out.slice(overview.out.indexOf('\nService:'))
  const names = [...listed.matchAll(/^ {2}(\S+( [a-z][a-z-]*)?)/gm)].map(([, name]) => name ?? '')
  expect(names).toContain('account create')
  for (const name of names) {
    const { code, out } = await command([...name.split(' '), '--help'], env)
    expect({ name, code }).toEqual({ name, code: 0 })
    expect(out).toStartWith(`Usage: hopcode ${name}`)
  }
  const settings = await command(['help', 'settings'], env)
  expect(settings.out).toContain('NOT_FOUND_URL (none)')
  expect((await command(['version'], env)).out).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('while a service runs, commands print links with its host and find its port', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const link = async () => {
    const { out } = await command(['account', 'setup-link', '--json'], env)
    return JSON.parse(out).link as string
  }
  {
    await using service = await Service.start({ ...env, BASE_URL: 'https://go.example.com' })
    expect(await link()).toStartWith('https://go.example.com/app/setup/')
    expect((await command(['health'], env)).out).toBe('ready\n')
    await service.end('SIGKILL')
  }
  expect(await link()).toStartWith('http://localhost:3000/app/setup/')
})
