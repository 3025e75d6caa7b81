import { afterAll, expect, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { JournalFile } from '../../src/hot/journal-file.ts'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolderInMemory as temporaryFolder } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'
import { AS_NOBODY, giveToNobody } from './lib/nobody.ts'
import { SeededRandom } from './lib/seeded-random.ts'

/**
 * A data folder with a damaged file is refused with words that name the file and the way out, and
 * left as it is: putting the good file back brings everything back. A damaged hit journal alone
 * refuses nothing: it holds some hits, and the links are in the database.
 */

const random = new SeededRandom(SEED)
const sizeOf = (file: string) => statSync(file).size

/** Overwrites bytes of a file with others. */
function garble(file: string, start: number, length: number): void {
  const bytes = readFileSync(file)
  bytes.set(random.bytes(Math.min(length, bytes.length - start)), start)
  writeFileSync(file, bytes)
}

interface Damage {
  file: string
  name: string
  damage: (file: string) => void
  says: RegExp
}

const empty = (file: string) => truncateSync(file, 0)
const remove = (file: string) => rmSync(file)
const folderInPlace = (file: string) => {
  rmSync(file)
  mkdirSync(file)
}
const forbidden = (file: string) => chmodSync(file, 0)
const readOnly = (file: string) => chmodSync(file, 0o400)
const middle = (file: string) => {
  const page = Math.floor(sizeOf(file) / 2 / 4096) * 4096
  garble(file, page, 4096)
}

const DB = 'hopcode.db'
const LOG = 'hopcode.db-wal'
const KEY = 'secret.key'
const JOURNAL = 'hits.journal'
const RESTORE = /Run "hopcode restore" with a backup/
const ACCESS = /Is it a file that this user may read and write\?/

const DAMAGES: Damage[] = [
  { file: DB, name: 'empty', damage: empty, says: RESTORE },
  { file: DB, name: 'missing', damage: remove, says: RESTORE },
  { file: DB, name: 'garbled at its start', damage: (f) => garble(f, 0, 100), says: RESTORE },
  {
    file: DB,
    name: 'garbled in its first page',
    damage: (f) => garble(f, 100, 3996),
    says: RESTORE,
  },
  { file: DB, name: 'garbled in the middle', damage: middle, says: RESTORE },
  { file: DB, name: 'cut to a few bytes', damage: (f) => truncateSync(f, 50), says: RESTORE },
  { file: DB, name: 'cut to its first page', damage: (f) => truncateSync(f, 4096), says: RESTORE },
  {
    file: DB,
    name: 'cut by its last byte',
    damage: (f) => truncateSync(f, sizeOf(f) - 1),
    says: RESTORE,
  },
  { file: DB, name: 'a folder', damage: folderInPlace, says: ACCESS },
  { file: DB, name: 'not to be read', damage: forbidden, says: ACCESS },
  { file: DB, name: 'not to be written', damage: readOnly, says: ACCESS },
  { file: LOG, name: 'garbled at its start', damage: (f) => garble(f, 0, 32), says: RESTORE },
  { file: KEY, name: 'empty', damage: empty, says: RESTORE },
  { file: KEY, name: 'missing', damage: remove, says: RESTORE },
  { file: KEY, name: 'garbled', damage: (f) => garble(f, 20, 20), says: RESTORE },
  { file: KEY, name: 'cut by its last byte', damage: (f) => truncateSync(f, 64), says: RESTORE },
  { file: KEY, name: 'a folder', damage: folderInPlace, says: ACCESS },
  { file: KEY, name: 'not to be read', damage: forbidden, says: ACCESS },
  { file: JOURNAL, name: 'a folder', damage: folderInPlace, says: ACCESS },
  { file: JOURNAL, name: 'not to be read', damage: forbidden, says: ACCESS },
  { file: JOURNAL, name: 'not to be written', damage: readOnly, says: ACCESS },
]

const JOURNAL_DAMAGES: Pick<Damage, 'name' | 'damage'>[] = [
  { name: 'empty', damage: empty },
  { name: 'garbled at its start', damage: (f) => garble(f, 0, 100) },
  { name: 'garbled in its number of entries', damage: (f) => garble(f, 8, 4) },
  { name: 'of another database', damage: (f) => garble(f, 16, 16) },
  { name: 'cut in its header', damage: (f) => truncateSync(f, 100) },
  { name: 'cut in the middle', damage: (f) => truncateSync(f, sizeOf(f) / 2) },
]

/** Made once: a folder of a service that was stopped, and one of a service that was killed. */
const stopped = temporaryFolder()
const killed = temporaryFolder()
const prepared = Promise.all([prepare(stopped.path, 'SIGTERM'), prepare(killed.path, 'SIGKILL')])
afterAll(() => {
  stopped[Symbol.dispose]()
  killed[Symbol.dispose]()
})

test.each(DAMAGES)(
  `$file $name is refused, named, and left as it is (seed ${SEED})`,
  async ({ file, damage, says }) => {
    await prepared
    // A killed service's log holds whole pages: damage to the database file itself is undone.
    const sources = { [DB]: [stopped.path], [LOG]: [killed.path] }[file] ?? [
      stopped.path,
      killed.path,
    ]
    for (const source of sources) {
      using folder = temporaryFolder()
      const data = join(folder.path, 'data')
      cpSync(source, data, { recursive: true })
      giveToNobody(folder.path)
      const path = join(data, file)
      const good = readFileSync(path)
      damage(path)
      const before = fingerprint(data, source)
      const refused = await serveAsNobody(data)
      expect(refused.code).toBe(1)
      expect(refused.out).toBe('')
      expect(refused.err).toStartWith('hopcode: ')
      expect(refused.err.trim().split('\n')).toHaveLength(1)
      expect(refused.err).toContain(path)
      expect(refused.err).toMatch(says)
      expect(fingerprint(data, source)).toEqual(before)

      if (source === stopped.path) continue
      rmSync(path, { recursive: true, force: true })
      writeFileSync(path, good)
      await using service = await Service.start({ DATA_DIR: data })
      expect(await service.hitCount('DAMAGED')).toBe(5)
      expect((await service.fetch('/DAMAGED')).headers.get('location')).toBe(`${FIRST}?changed`)
    }
  },
)

test.each(JOURNAL_DAMAGES)(
  `a hit journal that is $name is renamed and reported, and redirects start (seed ${SEED})`,
  async ({ damage }) => {
    await prepared
    for (const source of [stopped.path, killed.path]) {
      using folder = temporaryFolder()
      const data = join(folder.path, 'data')
      cpSync(source, data, { recursive: true })
      giveToNobody(folder.path)
      const journal = join(data, JOURNAL)
      damage(journal)
      const damaged = readFileSync(journal)
      await using service = await Service.start({ DATA_DIR: data }, AS_NOBODY)
      const before = await service.hitCount('DAMAGED')
      // What the killed service had not counted yet is lost, and nothing else.
      if (source === stopped.path) expect(before).toBe(5)
      else expect(before).toBeLessThanOrEqual(5)
      expect((await service.fetch('/DAMAGED')).status).toBe(302)
      expect(await service.hitCount('DAMAGED')).toBe(before + 1)
      const [renamed = ''] = readdirSync(data).filter((name) => name.startsWith(RENAMED))
      expect(readFileSync(join(data, renamed))).toEqual(damaged)
      expect(await service.end('SIGTERM')).toBe(0)
      const events = (await service.errors)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(events.filter(({ level }) => level === 'error')).toEqual([
        expect.objectContaining({
          event: 'hits.journal_damaged',
          file: journal,
          renamed: join(data, renamed),
          lost: 'hits not yet counted',
        }),
      ])
    }
  },
)

const RENAMED = `${JOURNAL}.damaged-`

const FIRST = 'https://example.com/damaged'

/** A folder with some links and hits, as a service leaves it that ends by `signal`. */
async function prepare(dataDir: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const env = { DATA_DIR: dataDir }
  const key = await makeAccount(env)
  // Small: each test copies it.
  JournalFile.open(join(dataDir, JOURNAL), 1024).close()
  await using service = await Service.start(env)
  const reserved = await service.post('/api/reserve', key, { code: 'DAMAGED' })
  const { passcode } = (await reserved.json()) as { passcode: string }
  await service.post('/api/update', key, { code: 'DAMAGED', passcode, url: `${FIRST}?changed` })
  const urls = Array.from({ length: 100 }, (_, i) => `${FIRST}/${i}`)
  expect((await service.post('/api/bulk-shorten', key, { urls })).status).toBe(201)
  for (let i = 0; i < 5; i++) expect((await service.fetch('/DAMAGED')).status).toBe(302)
  await service.end(signal)
  // A socket cannot be copied.
  rmSync(join(dataDir, 'serving.sock'), { force: true })
}

async function serveAsNobody(dataDir: string) {
  const baseUrl = 'http://hop.test'
  const env = { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: '0', BASE_URL: baseUrl }
  // A service that starts after all would serve for ever.
  return command(['serve'], env, ['timeout', '-s', 'KILL', '10', ...AS_NOBODY])
}

/**
 * The content of the folder, except the lock of its service and SQLite's shared memory. The log
 * of a killed service may be merged into the database file, which changes both and loses nothing.
 */
function fingerprint(dataDir: string, source: string): Record<string, string> {
  const leftOut = source === killed.path ? [DB, LOG] : []
  const isLeftOut = (name: string) => /^serving\.|-shm$/.test(name) || leftOut.includes(name)
  const found: Record<string, string> = {}
  for (const entry of readdirSync(dataDir, { recursive: true, withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue
    const path = join(entry.parentPath, entry.name)
    const { mode, size } = statSync(path)
    // An empty log is as good as none.
    if (entry.name.endsWith('-wal') && size === 0) continue
    const isReadable = entry.isFile()
    const hash = isReadable ? Bun.hash(readFileSync(path)).toString(16) : 'folder'
    found[path] = `${mode.toString(8)} ${hash}`
  }
  return found
}
