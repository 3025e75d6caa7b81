import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fillDataFolder } from './data-folder.ts'
import { firstDifference, sharedRows } from './database.ts'
import { temporaryFolder } from './folder.ts'

const INSERT = `INSERT INTO links (code, account_id, url, passcode_hash, created_at)
  VALUES (?, 1, ?, x'00ff', 5)`

function twoDatabases(folder: string): [string, string] {
  const files = ['one', 'two'].map((name) => {
    mkdirSync(join(folder, name))
    fillDataFolder(join(folder, name))
    return join(folder, name, 'hopcode.db')
  })
  return files as [string, string]
}

function change(file: string, sql: string): void {
  using db = new Database(file)
  db.run(sql)
}

test.each([
  { what: 'a changed value', sql: "UPDATE links SET url = 'https://b.example' WHERE id = 1" },
  { what: 'a missing row', sql: 'DELETE FROM links WHERE id = 2' },
  { what: 'a changed byte', sql: "UPDATE links SET passcode_hash = x'00fe' WHERE id = 2" },
  { what: 'the next id', sql: "UPDATE sqlite_sequence SET seq = 9 WHERE name = 'links'" },
])('two databases differ in $what, which is named', ({ sql }) => {
  using folder = temporaryFolder()
  const [one, two] = twoDatabases(folder.path)
  for (const file of [one, two]) {
    using db = new Database(file)
    for (const code of ['AAAAAA', 'BBBBBB']) db.query(INSERT).run(code, 'https://a.example')
  }
  expect(firstDifference(one, two)).toBeUndefined()
  change(two, sql)
  expect(firstDifference(one, two)).toMatch(/^row \d+:\n {2}.*(links|sqlite_sequence) /)
})

test('what belongs to one host is no difference', () => {
  using folder = temporaryFolder()
  const [one, two] = twoDatabases(folder.path)
  for (const [file, id] of [
    [one, 'a'],
    [two, 'b'],
  ] as const) {
    const position = id.charCodeAt(0)
    change(file, `INSERT INTO hit_totals VALUES (1, '${id}', ${position}, 7, 0)`)
  }
  change(one, 'UPDATE search_progress SET indexed_to = 1')
  change(one, "INSERT INTO links_search (rowid, text) VALUES (1, 'indexed')")
  expect(firstDifference(one, two)).toBeUndefined()
  expect([...sharedRows(one)].filter((row) => row.startsWith('hit_totals'))).toEqual([
    'hit_totals {"id":1,"redirects":7,"imported":0}',
  ])
})
