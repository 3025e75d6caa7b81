import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { command, makeAccount } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** A command that the machine refuses ends with one line that names the reason. */

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
}, 30_000)

test('a start with 22 file descriptors ends with one line', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path, PORT: '0', BASE_URL: 'http://hop.test' }
  await makeAccount(env)
  const limited = ['sh', '-c', `ulimit -n 22 && exec "$@"`, 'sh']
  expectOneLine(await command(['serve'], env, limited))
})
