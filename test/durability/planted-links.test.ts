import { expect } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolderInMemory as temporaryFolder } from '../support/folder.ts'
import { testWith } from '../support/tools.ts'
import { AS_NOBODY, giveToNobody } from './lib/nobody.ts'

/** The service's user creates a link in the data folder, and root runs a command. */

const testAsRoot = testWith('root')
const BASE_URL = 'http://hop.test'
const SECRET = 'of another program'

/** A folder of the service's user, a backup of it, and files of root that it must not reach. */
async function plantable(path: string) {
  const env = { DATA_DIR: join(path, 'data'), BASE_URL, PORT: '0' }
  await makeAccount(env)
  const backup = join(path, 'backup.tar')
  expect(await command(['backup', backup], env)).toMatchObject({ code: 0 })
  giveToNobody(env.DATA_DIR)
  const victim = join(path, 'elsewhere', 'victim')
  mkdirSync(join(path, 'elsewhere', 'qr'), { recursive: true })
  writeFileSync(victim, SECRET)
  writeFileSync(join(path, 'elsewhere', 'qr', 'kept.png'), SECRET)
  return { env, backup, victim, elsewhere: join(path, 'elsewhere') }
}

const contentsOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), 'utf8')])
    .sort()

const PLANTED = [
  'hopcode.db',
  'secret.key',
  'hits.journal',
  'serving.sock',
  'serving.lock',
  'serving.pid',
  '.restore-decided',
  'cdn',
]

testAsRoot.each(PLANTED)('root follows no link that is called %s', async (name) => {
  using folder = temporaryFolder()
  const { env, backup, victim, elsewhere } = await plantable(folder.path)
  const link = join(env.DATA_DIR, name)
  rmSync(link, { recursive: true, force: true })
  const before = contentsOf(elsewhere)
  const commands = [
    ['restore', backup],
    ['serve'],
    ['account', 'list'],
    ['backup', join(folder.path, 'stolen.tar')],
    ['check'],
  ]
  const isFolder = name === 'cdn' || name === '.restore-decided'
  // Where nothing is yet, too: root would create what it leads to.
  for (const target of [isFolder ? elsewhere : victim, join(elsewhere, 'not-there')]) {
    symlinkSync(target, link)
    for (const args of commands) {
      const { code, out, err } = await command(args, env)
      expect({ args, code, out }).toEqual({ args, code: 1, out: '' })
      expect(err).toBe(
        `hopcode: ${link} is a symbolic link, and root follows none in DATA_DIR: remove it, or ` +
          'run this as the user of the service.\n',
      )
    }
    expect(contentsOf(elsewhere)).toEqual(before)
    rmSync(link)
  }
  expect(existsSync(join(folder.path, 'stolen.tar'))).toBe(false)
})

testAsRoot.each(['../elsewhere/taken', '../elsewhere', 'cdn', ''])(
  'a decided restore that somebody made up, with %j for the old files, moves nothing',
  async (aside) => {
    using folder = temporaryFolder()
    const { env, elsewhere } = await plantable(folder.path)
    const decided = join(env.DATA_DIR, '.restore-decided')
    mkdirSync(decided)
    for (const name of ['hopcode.db', 'secret.key']) {
      cpSync(join(env.DATA_DIR, name), join(decided, name))
    }
    writeFileSync(join(decided, 'aside'), aside)
    const data = () =>
      contentsOf(env.DATA_DIR)
        .map(([name = '']) => name)
        .filter((name) => !name.startsWith('serving.'))
    const before = [contentsOf(elsewhere), data()]
    const { code, err } = await command(['account', 'list'], env)
    expect(code).toBe(1)
    expect(err).toContain('does not name a folder for the old files')
    expect(err.trim().split('\n')).toHaveLength(1)
    expect([contentsOf(elsewhere), data()]).toEqual(before)
  },
)

testAsRoot('a folder for the old files that is a link, too', async () => {
  using folder = temporaryFolder()
  const { env, elsewhere } = await plantable(folder.path)
  const decided = join(env.DATA_DIR, '.restore-decided')
  mkdirSync(decided)
  cpSync(join(env.DATA_DIR, 'secret.key'), join(decided, 'secret.key'))
  writeFileSync(join(decided, 'aside'), 'before-restore-1')
  symlinkSync(elsewhere, join(env.DATA_DIR, 'before-restore-1'))
  const before = contentsOf(elsewhere)
  const { code, err } = await command(['account', 'list'], env)
  expect(code).toBe(1)
  expect(err).toContain('before-restore-1 is a symbolic link')
  expect(contentsOf(elsewhere)).toEqual(before)
})

testAsRoot('a decided restore that holds links: they are moved, and not followed', async () => {
  using folder = temporaryFolder()
  const { env, victim, elsewhere } = await plantable(folder.path)
  const decided = join(env.DATA_DIR, '.restore-decided')
  mkdirSync(decided)
  symlinkSync(victim, join(decided, 'secret.key'))
  writeFileSync(join(decided, 'aside'), 'before-restore-1')
  const before = contentsOf(elsewhere)
  const { code, err } = await command(['account', 'list'], env)
  expect(code).toBe(1)
  expect(err).toContain('secret.key is a symbolic link')
  expect(contentsOf(elsewhere)).toEqual(before)
})

testAsRoot(
  'another user may lay a file elsewhere and link to it, and links to DATA_DIR go',
  async () => {
    using folder = temporaryFolder()
    const { env } = await plantable(folder.path)
    const moved = ['secret.key', 'hopcode.db']
    for (const name of moved) {
      renameSync(join(env.DATA_DIR, name), join(folder.path, name))
      symlinkSync(join(folder.path, name), join(env.DATA_DIR, name))
    }
    giveToNobody(folder.path)
    {
      await using service = await Service.start({ DATA_DIR: env.DATA_DIR }, AS_NOBODY)
      expect(await service.end('SIGTERM')).toBe(0)
    }
    for (const name of moved) renameSync(join(folder.path, name), join(env.DATA_DIR, name))
    symlinkSync(env.DATA_DIR, join(folder.path, 'linked'))
    const linked = { ...env, DATA_DIR: join(folder.path, 'linked') }
    expect(await command(['account', 'list'], linked)).toMatchObject({ code: 0 })
  },
)
