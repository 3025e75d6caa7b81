/**
 * Turns a change of src/db/schema.ts into a migration, and lists all migrations for the program,
 * which embeds them: `npm run db:generate -- --name NAME`. A test fails while one is not listed.
 */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')

const generate = Bun.spawn(
  [process.execPath, 'x', 'drizzle-kit', 'generate', ...process.argv.slice(2)],
  { cwd: ROOT, stdio: ['inherit', 'inherit', 'inherit'] },
)
const code = await generate.exited
if (code !== 0) process.exit(code)

const names = readdirSync(join(ROOT, 'drizzle'))
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.slice(0, -'.sql'.length))
  .sort()
const imported = (name: string) => `m${name.slice(0, name.indexOf('_'))}`
writeFileSync(
  join(ROOT, 'src/db/migrations.gen.ts'),
  [
    '// Written by `npm run db:generate`.',
    ...names.map(
      (name) => `import ${imported(name)} from '../../drizzle/${name}.sql' with { type: 'text' }`,
    ),
    '',
    '/** Migrations in order, embedded in the binary. Released ones never change. */',
    'export const MIGRATIONS: readonly { name: string; sql: string }[] = [',
    ...names.map((name) => `  { name: '${name}', sql: ${imported(name)} },`),
    ']',
    '',
  ].join('\n'),
)
