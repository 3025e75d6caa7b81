import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { TAG_COUNT_MAX, TAGS_LISTED_MAX, tagReads } from './tags.ts'

test('tags come in alphabetical order with their counts, both up to a bound', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const { listTags } = tagReads(db)
  expect(listTags({ accountId: 1 })).toEqual([])
  const add = db.prepare('INSERT INTO link_tags (account_id, tag, link_id) VALUES (?, ?, ?)')
  for (let link = 1; link <= TAG_COUNT_MAX + 5; link++) add.run(1, 'summer', link)
  for (const link of [3, 5]) add.run(1, 'autumn', link)
  add.run(2, 'winter', 9999)
  expect(listTags({ accountId: 1 })).toEqual([
    { tag: 'autumn', count: 2 },
    { tag: 'summer', count: TAG_COUNT_MAX },
  ])
  for (let n = 0; n < TAGS_LISTED_MAX + 5; n++) add.run(2, `tag ${String(n).padStart(4, '0')}`, 1)
  expect(listTags({ accountId: 2 })).toHaveLength(TAGS_LISTED_MAX)
  db.close()
})
