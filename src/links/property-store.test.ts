import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { plainWrites } from '../../test/support/plain-links.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { commitTogether } from '../db/writer.ts'
import { toCode } from '../lib/code.ts'
import { linkWrites } from './store.ts'
import { urlKey } from './url.ts'

test('calls that older hosts of a cluster wrote into the log are applied', () => {
  using folder = temporaryFolderInMemory()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  db.run("INSERT INTO accounts (email, plan, created_at) VALUES ('a', 'pro', 0)")
  const url = 'https://example.com/'
  const code = toCode('SPRING')
  if (!code) throw new Error('it is a code')
  const item = { url, urlKey: urlKey(new URL(url)), code, passcodeHash: new Uint8Array(32) }
  const [link] = plainWrites(db).create(1, [item])
  const id = link?.id as number
  const common = { quota: { linksMax: 0, urlBytesMax: 0 }, author: { accountId: 1, now: 0 } }
  commitTogether(db, linkWrites(db), [
    { name: 'changeProperties', args: { ids: [id], patch: { maxHits: 3 }, ...common } },
    { name: 'setAliases', args: { id, paths: ['old', 'kept'], ...common } },
    { name: 'setAliases', args: { id, paths: ['kept', 'new'], ...common } },
  ])
  expect(db.query('SELECT max_hits FROM links').get()).toEqual({ max_hits: 3 })
  const aliases = db.query('SELECT path FROM aliases ORDER BY path').values().flat()
  expect(aliases).toEqual(['kept', 'new'])
  db.close()
})
