import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolderInMemory as temporaryFolder } from '../support/folder.ts'

/** Who may read the files of a data folder that others may enter, whatever the umask. */

const WITHOUT_UMASK = ['bash', '-c', 'umask 0; exec "$0" "$@"']
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

function modesOf(dataDir: string): Record<string, string> {
  const files = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(files.map(({ name }) => [name, modeOf(join(dataDir, name))]))
}

const CREATED = [
  'hits.journal',
  'hopcode.db',
  'hopcode.db-shm',
  'hopcode.db-wal',
  'secret.key',
  'serving.lock',
  'serving.pid',
]
const closed = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, '600']))

test('in a folder that others may enter, every file is its owner’s alone, but for the images', async () => {
  using folder = temporaryFolder()
  const data = join(folder.path, 'data')
  mkdirSync(data, { mode: 0o755 })
  const env = { DATA_DIR: data }
  const { code, out } = await command(
    ['account', 'create', '--email', 'a@example.com', '--plan', 'free', '--json'],
    env,
    WITHOUT_UMASK,
  )
  expect(code).toBe(0)
  await using service = await Service.start(env, WITHOUT_UMASK)
  expect(modesOf(data)).toEqual(closed(CREATED))
  const made = await service.shorten(JSON.parse(out).api_key, 'https://example.com/modes')
  const image = join(data, 'cdn', 'qr', `${made}.png`)
  await eventually(
    'the image is made',
    () => statSync(image, { throwIfNoEntry: false }) !== undefined,
  )
  // For a web server that has a mount of `cdn` alone.
  expect([join(data, 'cdn'), join(data, 'cdn', 'qr'), image].map(modeOf)).toEqual([
    '755',
    '755',
    '644',
  ])
  const backup = join(folder.path, 'backup.tar')
  expect(await command(['backup', backup], env, WITHOUT_UMASK)).toMatchObject({ code: 0 })
  expect(modeOf(backup)).toBe('600')
})

test('files that an earlier release left open are closed by the next start, which says so', async () => {
  using folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const env = { DATA_DIR: data }
  await makeAccount(env)
  writeFileSync(join(data, 'hopcode.db.before-5'), 'a copy')
  writeFileSync(join(data, 'blocklist.txt'), 'of the operator')
  for (const name of readdirSync(data)) chmodSync(join(data, name), 0o644)
  const checked = await command(['check'], env)
  expect(checked.code).toBe(1)
  expect(checked.out).toContain(
    'PROBLEM  file modes: other users can read or write hopcode.db, hopcode.db-shm, hopcode.db-wal, ' +
      `hopcode.db.before-5, secret.key, serving.lock, serving.pid in ${data}`,
  )
  {
    await using service = await Service.start(env)
    expect(modesOf(data)).toEqual({
      ...closed([...CREATED, 'hopcode.db.before-5']),
      'blocklist.txt': '644',
    })
    await service.end('SIGTERM')
    expect(await service.errors).toContain('"event":"data.modes_closed"')
  }
  expect(await command(['check'], env)).toMatchObject({ code: 0 })
})
