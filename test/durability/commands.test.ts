import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FolderLock } from '../../src/db/lock.ts'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { AS_NOBODY } from './lib/nobody.ts'

/** Commands on the data, with and without a running service: one process writes the database. */

const create = (email: string) => [
  'account',
  'create',
  '--email',
  email,
  '--plan',
  'free',
  '--json',
]

const emailsIn = async (env: Record<string, string>): Promise<string[]> => {
  const { out } = await command(['account', 'list', '--json'], env)
  return out.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line).email))
}

const KILLS = 4

test('a change that a command has confirmed survives a kill of the service right after', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const confirmed: string[] = []
  for (let round = 0; round < KILLS; round++) {
    await using service = await Service.start(env)
    const running = Array.from({ length: 6 }, async (_, at) => {
      const email = `${round}-${at}@example.com`
      const { code, err } = await command(create(email), env)
      if (code === 0) confirmed.push(email)
      // Unknown is not refused: the change may have been made.
      else expect(err).toContain('ended before it answered')
      // In the middle of the others.
      if (at === round) await service.end('SIGKILL')
    })
    await Promise.all(running)
  }
  expect(confirmed.length).toBeGreaterThanOrEqual(KILLS)
  expect(await emailsIn(env)).toEqual(expect.arrayContaining(confirmed))
})

test('the socket is private, and a killed service leaves one that is in nobody’s way', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  const socket = join(folder.path, 'serving.sock')
  {
    await using service = await Service.start(env)
    expect(statSync(socket).mode & 0o777).toBe(0o600)
    await service.end('SIGKILL')
  }
  expect(existsSync(socket)).toBe(true)
  expect((await command(create('a@example.com'), env)).code).toBe(0)
  await using service = await Service.start(env)
  expect((await command(create('b@example.com'), env)).code).toBe(0)
  expect(await emailsIn(env)).toEqual(['a@example.com', 'b@example.com'])
  await service.end('SIGTERM')
  expect(existsSync(socket)).toBe(false)
})

test('a data folder with a longer path than a Unix socket may have', async () => {
  using folder = temporaryFolder()
  const deep = join(folder.path, 'd'.repeat(100), 'e'.repeat(100), 'f'.repeat(100))
  mkdirSync(deep, { recursive: true })
  const env = { DATA_DIR: deep }
  await using service = await Service.start(env)
  expect(existsSync(join(deep, 'serving.sock'))).toBe(true)
  const key = await makeAccount(env)
  const answer = await service.fetch('/api/list', { headers: { 'x-api-key': key } })
  expect(answer.status).toBe(200)
  expect((await command(['health'], env)).out).toBe('ready\n')
})

test('a command waits for a service that stops, and for one that starts', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await makeAccount(env)
  const stopping = await Service.start(env)
  const ended = stopping.end('SIGTERM')
  const meanwhile = ['1', '2', '3', '4'].map(async (name) => {
    const email = `${name}@example.com`
    expect(await command(create(email), env)).toMatchObject({ code: 0, err: '' })
    return email
  })
  expect(await ended).toBe(0)
  await using _service = await Service.start(env)
  const confirmed = await Promise.all(meanwhile)
  expect(await emailsIn(env)).toEqual(expect.arrayContaining(confirmed))
})

test('while another process holds the folder and does not answer, a command names it', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await makeAccount(env)
  using _lock = FolderLock.claim(folder.path)
  const { code, out, err } = await command(create('b@example.com'), env)
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain(`Process ${process.pid} uses ${folder.path}`)
  expect(err).toContain('Nothing is changed.')
  expect(err.trim()).not.toContain('\n')
})

test('a service that does not answer its socket is named, and nothing is changed', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await using service = await Service.start(env)
  process.kill(service.pid, 'SIGSTOP')
  const { code, err } = await command(create('a@example.com'), env)
  process.kill(service.pid, 'SIGCONT')
  expect([code, err]).toEqual([
    1,
    `hopcode: The service that uses ${folder.path} does not answer.\n`,
  ])
  expect(await emailsIn(env)).toEqual([])
})

test('another user is refused with the advice to be the user of the service', async () => {
  if (AS_NOBODY.length === 0) return
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await using _service = await Service.start(env)
  const { code, err } = await command(create('a@example.com'), env, AS_NOBODY)
  expect(code).toBe(1)
  expect(err).toContain('run the command as the user of the service')
  expect(err.trim()).not.toContain('\n')
})

test('a backup and a check beside a service write nothing into its folder but the time of the backup', async () => {
  using folder = temporaryFolder()
  using outside = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await makeAccount(env)
  await using _service = await Service.start(env)
  const names = () => readdirSync(folder.path).sort()
  const before = names()
  const backup = join(outside.path, 'today.hopcode')
  expect((await command(['backup', backup], env)).code).toBe(0)
  expect((await command(['check'], env)).code).toBe(0)
  // The time of this file is that of the last backup.
  expect(names()).toEqual([...before, 'last-backup'].sort())
})

test('a call that is longer than the service accepts, or unknown to it, is refused', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path }
  await using service = await Service.start(env)
  const unix = join(folder.path, 'serving.sock')
  const post = (path: string, body: string) =>
    fetch(`http://service${path}`, { unix, method: 'POST', body }).then(({ status }) => status)
  expect(await post('/createAccount', 'x'.repeat(2 * 1024 * 1024))).toBe(413)
  expect(await post('/constructor', '{}')).toBe(404)
  expect(await post('/createAccount', '{')).toBe(422)
  expect((await service.fetch('/-/ready')).status).toBe(200)
})

test('a socket that is no socket does not keep the service from starting', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'serving.sock'), 'not a socket')
  const env = { DATA_DIR: folder.path }
  expect((await command(create('a@example.com'), env)).code).toBe(0)
  await using _service = await Service.start(env)
  expect(await emailsIn(env)).toEqual(['a@example.com'])
  rmSync(join(folder.path, 'serving.sock'))
})

test('with --json every result is JSON, and an empty list is nothing', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: join(folder.path, 'data'), BASE_URL: 'https://hop.test' }
  const email = 'a@example.com'
  const run = async (line: string) => {
    const { code, out, err } = await command([...line.split(' '), '--json'], env)
    expect([line, code, err]).toEqual([line, 0, ''])
    return out
  }
  const json = async (line: string) => JSON.parse(await run(line))
  const { api_key } = await json(`account create --email ${email} --plan pro`)
  await using service = await Service.start(env)
  expect((await service.post('/api/reserve', api_key, { code: 'SPRING26' })).status).toBe(201)
  await service.end('SIGTERM')
  expect(await run('link disabled')).toBe('')
  const account = { account_id: 1, email }
  expect(await json(`account set-plan --email ${email} --plan pro`)).toEqual({
    ...account,
    plan: 'pro',
  })
  expect(await json(`account disable --email ${email} --links`)).toEqual({
    ...account,
    disabled: true,
    links: true,
  })
  expect(await json(`account enable --email ${email}`)).toEqual({ ...account, disabled: false })
  expect(await json(`account reset-two-factor --email ${email}`)).toEqual({
    ...account,
    was_on: false,
  })
  const invited = await json(`account member add --account ${email} --email b@example.com`)
  expect(invited).toMatchObject({ account_id: 1, email: 'b@example.com', role: 'editor' })
  expect(invited.link).toStartWith('https://hop.test/app/join/')
  const members = await json('account member list --account 1')
  expect(members).toMatchObject({ account_id: 1, email, role: 'admin', two_factor: false })
  expect(await json(`account member role --account 1 --email ${email} --role admin`)).toEqual({
    ...account,
    role: 'admin',
  })
  const renamed = await json(`account rename --account ${email} --name Bakery`)
  expect(renamed).toEqual({ account_id: 1, name: 'Bakery' })
  expect(await json('account list')).toMatchObject({ account_id: 1, email, name: 'Bakery' })
  const revoked = await json(`key revoke --email ${email}`)
  expect(revoked).toMatchObject({ ...account, name: 'Default' })
  expect(Date.parse(revoked.ends_at)).toBeGreaterThan(Date.now())
  const { until } = await json('maintenance on --until 2h')
  expect(await json('maintenance status')).toEqual({ until })
  expect(await json('maintenance off')).toEqual({ until: null })
  const disabled = { code: 'SPRING26', disabled: true, reason: 'spam' }
  expect(await json('link disable spring26 --reason spam')).toEqual(disabled)
  expect(await json('link disabled')).toMatchObject({ code: 'SPRING26', reason: 'spam' })
  expect(await json('link enable SPRING26')).toEqual({ code: 'SPRING26', disabled: false })
  const backup = join(folder.path, 'now.hopcode')
  const { file: _, ...counted } = await json(`backup ${backup}`)
  const restored = await json(`restore ${backup}`)
  expect(restored).toMatchObject({ from: backup, ...counted, old_files: expect.any(String) })
})
