import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import { migrate } from '../db/migrate.ts'
import { DelayedDeletion } from './delayed-deletion.ts'

test('a due row without a link, as in a damaged database, is tried once per poll', async () => {
  const db = new Database(':memory:')
  migrate(db)
  db.run('INSERT INTO link_properties (link_id, delete_at) VALUES (7, 1)')
  let calls = 0
  const deletion = new DelayedDeletion({
    db,
    clock: () => 2,
    log: { error() {} } as never,
    links: {
      async deleteDue() {
        calls++
        if (calls > 100) throw new Error('it goes on without an end')
        return 0
      },
    },
  })
  await eventually('two polls', () => calls >= 2)
  expect(calls).toBeLessThan(10)
  deletion.close()
})
