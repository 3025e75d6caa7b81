import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './folder.ts'

const ROOT = join(import.meta.dir, '../..')
const NAME = '9999_next'
/** More rows than SQLite writes at once, so that a kill finds the upgrade in its middle. */
const SQL = `CREATE TABLE next (id integer PRIMARY KEY, text text NOT NULL);
INSERT INTO next WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  SELECT i, hex(randomblob(100)) FROM n;`

/** The release after this one, from the same sources with one more table, to run in a process. */
export function nextRelease(): Disposable & { words: string[] } {
  const folder = temporaryFolder()
  const inside = (name: string) => join(folder.path, name)
  for (const name of ['src', 'drizzle']) cpSync(join(ROOT, name), inside(name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), inside('node_modules'))
  cpSync(join(ROOT, 'tsconfig.json'), inside('tsconfig.json'))
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const [major] = manifest.version.split('.')
  writeFileSync(inside('package.json'), JSON.stringify({ ...manifest, version: `${major}.999.0` }))
  writeFileSync(inside(`drizzle/${NAME}.sql`), SQL)
  const list = inside('src/db/migrations.gen.ts')
  const text = readFileSync(list, 'utf8').replace(/\]\n$/, `  { name: '${NAME}', sql: next },\n]\n`)
  writeFileSync(list, `import next from '../../drizzle/${NAME}.sql' with { type: 'text' }\n${text}`)
  const words = [process.execPath, inside('src/main.ts')]
  return { words, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}
