import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
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

/** The operator's drill: back up, lose the folder, restore. The compiled program, from outside. */

interface Made {
  code: string
  passcode: string
  url: string
}

async function shorten(service: Service, key: string, url: string): Promise<Made> {
  const response = await service.post('/api/shorten', key, { url })
  expect(response.status).toBe(201)
  return (await response.json()) as Made
}

async function follow(service: Service, code: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
}

async function run(args: readonly string[], env: Settings): Promise<string> {
  const { code, out, err } = await command(args, env)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out
}

/** Everything in a folder by name, except the lock of a command that read it. */
function contentsOf(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile() && !entry.name.startsWith('serving.'))
  const hash = (path: string) => Bun.hash(readFileSync(path)).toString(16)
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), hash(join(parentPath, name))]),
  )
}

test('the drill: a backup under load, the server killed, the folder wiped, the backup restored', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  const env = unlimited(folder.path)
  const file = join(elsewhere.path, 'drill.hopcode')
  const plans = ['enterprise', 'pro', 'free']
  const keys = await Promise.all(plans.map((plan) => makeAccount(env, plan)))
  const made: Made[] = []
  let before = 0
  let after = 0
  {
    await using service = await Service.start(env)
    for (const [n, key] of keys.entries()) {
      for (let i = 0; i < 20; i++) {
        made.push(await shorten(service, key, `https://example.com/${n}/${i}`))
      }
    }
    const [followed] = made as [Made]
    await follow(service, followed.code, 300)
    const load = { isOn: true, redirects: 300, late: [] as Made[] }
    const redirects = Array.from({ length: 4 }, async () => {
      while (load.isOn) {
        await follow(service, followed.code, 1)
        load.redirects++
      }
    })
    const creations = Array.from({ length: 2 }, async (_, writer) => {
      for (let i = 0; load.isOn; i++) {
        const url = `https://example.com/late/${writer}/${i}`
        load.late.push(await shorten(service, keys[0] as string, url))
      }
    })
    while (load.late.length < 20) await Bun.sleep(1)
    made.push(...load.late)
    before = load.redirects
    await run(['backup', file], env)
    // Those on their way may have been counted.
    after = load.redirects + redirects.length
    load.isOn = false
    await Promise.all([...redirects, ...creations])
    await service.end('SIGKILL')
  }
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(statSync(join(folder.path, 'last-backup')).mtimeMs).toBeGreaterThan(0)
  expect(readdirSync(elsewhere.path)).toEqual(['drill.hopcode'])
  rmSync(folder.path, { recursive: true })
  expect(await run(['restore', file], env)).toContain('3 accounts')
  expect(await run(['check'], env)).toEndWith('All is well.\n')

  await using restored = await Service.start(env)
  for (const { code, url } of made) {
    const response = await restored.fetch(`/${code}`)
    expect([response.status, response.headers.get('location')]).toEqual([302, url])
  }
  const [{ code, passcode }] = made as [Made]
  const counted = (await restored.hitCount(code)) - 1
  expect(counted).toBeGreaterThanOrEqual(before)
  expect(counted).toBeLessThanOrEqual(after)
  const url = 'https://example.com/changed'
  const update = await restored.post('/api/update', keys[0] as string, { code, passcode, url })
  expect(update.status).toBe(200)
  for (const key of keys) {
    const list = await restored.fetch('/api/list', { headers: { 'x-api-key': key } })
    expect(list.status).toBe(200)
  }
})

test.each([
  ['serving', false],
  ['killed', true],
])('hits that only the journal holds are in a backup, each once: %s', async (_, isKilled) => {
  using folder = temporaryFolder()
  using other = temporaryFolder()
  // Nothing is flushed while the test runs, but what a start counts.
  const env = { ...unlimited(folder.path), HIT_FLUSH_MS: '60000' }
  const key = await makeAccount(env)
  const file = join(other.path, 'hits.hopcode')
  await using service = await Service.start(env)
  const { code } = await shorten(service, key, 'https://example.com/hits')
  await follow(service, code, 137)
  if (isKilled) await service.end('SIGKILL')
  await run(['backup', file], env)
  const elsewhere = { ...env, DATA_DIR: join(other.path, 'data') }
  await run(['restore', file], elsewhere)
  await using restored = await Service.start(elsewhere)
  expect(await restored.hitCount(code)).toBe(137)
  const { total_redirects } = (await (await restored.fetch('/api/status')).json()) as {
    total_redirects: number
  }
  expect(total_redirects).toBe(137)
})

test('a backup goes through a pipe into another folder, passcodes and all', async () => {
  using folder = temporaryFolder()
  using other = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  await using service = await Service.start(env)
  const { code, passcode } = await shorten(service, key, 'https://example.com/pipe')
  const program = await binary()
  const pipe = `"${program}" backup - | DATA_DIR="${other.path}" "${program}" restore -`
  const { exitCode, stdout, stderr } = Bun.spawnSync(['bash', '-o', 'pipefail', '-c', pipe], {
    env,
  })
  expect(stderr.toString()).toContain('Backed up to standard output: 1 account, 1 link, ')
  expect(stdout.toString()).toContain('Restored standard input: 1 account, 1 link, ')
  expect(exitCode).toBe(0)
  expect(readdirSync(folder.path).filter((name) => name.startsWith('.'))).toEqual([])
  await using restored = await Service.start({ ...env, DATA_DIR: other.path })
  const gone = await restored.post('/api/delete', key, { code, passcode })
  expect(gone.status).toBe(200)
})

test('a restore over another state: codes come back, younger ones and their images go, the old files stay aside', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  // One address at every start: another would have the images made anew in any case.
  const env = { ...unlimited(folder.path), BASE_URL: 'https://hop.example' }
  const file = join(elsewhere.path, 'over.hopcode')
  const key = await makeAccount(env)
  const service = await Service.start(env)
  const old = await shorten(service, key, 'https://example.com/old')
  await run(['backup', file], env)
  const young = await shorten(service, key, 'https://example.com/young')
  expect((await service.fetch(`/cdn/qr/${young.code}.png`)).status).toBe(200)
  await service.post('/api/delete', key, { code: old.code, passcode: old.passcode })

  const refused = await command(['restore', file], env)
  expect(refused).toMatchObject({ code: 1, out: '' })
  expect(refused.err).toContain(`is served by process ${service.pid} already`)
  expect((await service.fetch(`/${young.code}`)).status).toBe(302)
  await service.end('SIGTERM')

  const words = await run(['restore', file], env)
  const aside = readdirSync(folder.path).find((name) => name.startsWith('before-restore-'))
  expect(words).toContain(aside as string)
  expect(readdirSync(join(folder.path, aside as string))).toContain('hopcode.db')
  expect(existsSync(join(folder.path, 'cdn', 'qr', `${young.code}.png`))).toBe(false)
  expect(await run(['check'], env)).toContain('before a restore')
  await using restored = await Service.start(env)
  expect((await restored.fetch(`/${old.code}`)).headers.get('location')).toBe(old.url)
  expect((await restored.fetch(`/${young.code}`)).status).toBe(404)
  expect((await restored.fetch(`/cdn/qr/${young.code}.png`)).status).toBe(404)
  // Made without being asked for: an outside server of the folder finds it too.
  const image = join(folder.path, 'cdn', 'qr', `${old.code}.png`)
  const deadline = performance.now() + 5000
  while (!existsSync(image) && performance.now() < deadline) await Bun.sleep(5)
  expect(existsSync(image)).toBe(true)
})

test('a changed byte, a cut and an addition are each refused, and never change the data', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  {
    await using service = await Service.start(env)
    for (let i = 0; i < 30; i++) await service.shorten(key, `https://example.com/${i}`)
    await service.end('SIGTERM')
  }
  const file = join(elsewhere.path, 'good.hopcode')
  await run(['backup', file], env)
  const good = readFileSync(file)
  const held = contentsOf(folder.path)
  const damaged = join(elsewhere.path, 'damaged.hopcode')
  const refuse = async (what: string, bytes: Uint8Array, why = `${damaged} is damaged: `) => {
    writeFileSync(damaged, bytes)
    const { code, out, err } = await command(['restore', damaged], env)
    expect([what, code, out]).toEqual([what, 1, ''])
    expect(err).toContain(why)
    expect(err).toContain(`${folder.path} is unchanged.`)
    expect(err.trimEnd()).not.toContain('\n')
    expect(contentsOf(folder.path)).toEqual(held)
  }
  const database = Bun.zstdDecompressSync(good)
  for (let at = 6; at < good.length; at += Math.ceil(good.length / 12)) {
    const bytes = Buffer.from(good)
    bytes[at] = (bytes[at] as number) ^ 1
    if (!unpacksTo(database, bytes)) await refuse(`byte ${at}`, bytes)
  }
  for (const cut of [5, 100, good.length >> 1, good.length - 10]) {
    await refuse(`${cut} bytes less`, good.subarray(0, -cut))
  }
  const noBackup = `${damaged} is not a backup of Hopcode`
  await refuse('nothing', new Uint8Array(0), noBackup)
  await refuse('a text', Buffer.from('a text that is longer than any magic number'), noBackup)
  await refuse('two backups', Buffer.concat([good, good]))
  await run(['restore', file], env)
  await run(['check'], env)
})

/** A few bits of a zstd frame, such as those that pad a stream, do not change what it contains. */
function unpacksTo(expected: Uint8Array, frame: Uint8Array): boolean {
  try {
    return Bun.zstdDecompressSync(frame).equals(expected)
  } catch {
    return false
  }
}

test('a backup is a database compressed with zstd, with the key and the manifest in it', async () => {
  using folder = temporaryFolder()
  const env = unlimited(join(folder.path, 'data'))
  await makeAccount(env)
  const file = join(folder.path, 'one.hopcode')
  await run(['backup', file], env)
  const unpacked = join(folder.path, 'one.db')
  writeFileSync(unpacked, Bun.zstdDecompressSync(readFileSync(file)))
  using db = new Database(unpacked, { readonly: true })
  const rows = db.query<{ name: string; value: string }, []>('SELECT * FROM backup').all()
  const contents = new Map(rows.map(({ name, value }) => [name, value]))
  const secret = readFileSync(join(folder.path, 'data', 'secret.key'), 'utf8')
  expect(contents.get('secret.key')).toBe(secret)
  expect(JSON.parse(contents.get('manifest') ?? '')).toMatchObject({ format: 2, accounts: 1 })
})

test('a crash beside a damaged database: restore brings the backup back, whatever log was left', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  const env = unlimited(folder.path)
  const key = await makeAccount(env)
  const file = join(elsewhere.path, 'crash.hopcode')
  const service = await Service.start(env)
  const { code } = await shorten(service, key, 'https://example.com/before')
  await run(['backup', file], env)
  for (let i = 0; i < 50; i++) await shorten(service, key, `https://example.com/after/${i}`)
  await service.end('SIGKILL')
  const database = join(folder.path, 'hopcode.db')
  expect(statSync(`${database}-wal`).size).toBeGreaterThan(0)
  writeFileSync(database, Buffer.alloc(statSync(database).size, 7))
  const refused = await command([], { ...env, PORT: '1' })
  expect([refused.code, refused.err.trimEnd().split('\n').length]).toEqual([1, 1])
  expect(refused.err).toContain('Run "hopcode restore" with a backup')
  await run(['restore', file], env)
  await using restored = await Service.start(env)
  expect((await restored.fetch(`/${code}`)).status).toBe(302)
})

test('a backup replaces no file, goes to no terminal, and says what is wrong in one line', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  const env = unlimited(folder.path)
  const file = join(elsewhere.path, 'there.hopcode')
  const nothing = await command(['backup', file], env)
  expect(nothing.err).toContain(`${folder.path}/hopcode.db is missing`)
  await makeAccount(env)
  writeFileSync(file, 'precious')
  const taken = await command(['backup', file], env)
  expect(taken).toMatchObject({ code: 1, err: expect.stringContaining('exists already') })
  expect(readFileSync(file, 'utf8')).toBe('precious')
  // The age of the last backup is that of a complete one.
  expect(existsSync(join(folder.path, 'last-backup'))).toBe(false)
  const astray = await command(['backup', join(elsewhere.path, 'no', 'where.hopcode')], env)
  expect(astray.code).toBe(1)
  expect(astray.err).toMatch(
    /^hopcode: .*no\/where\.hopcode cannot be written: there is no folder .*\/no\n$/,
  )
  // util-linux's script gives the command a terminal.
  const program = await binary()
  const typed = Bun.spawnSync(['script', '-qec', `${program} backup -`, '/dev/null'], { env })
  expect(typed.stdout.toString()).toContain('standard output is a terminal')
  const missing = await command(['restore', `${file}.not`], env)
  expect(missing).toMatchObject({ code: 1, err: expect.stringContaining(`${file}.not is missing`) })
})
