/** The rules of biome.json that are ours, each with sources that it must refuse and accept. */
import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from './support/folder.ts'

const ROOT = dirname(import.meta.dir)
const PLUGIN = 'scripts/no-literal-spread.grit'
const FUNCTION_LINES_MAX = 70

const functionOf = (lines: number) =>
  `export function f(g: () => void) {\n${'  g()\n\n'.repeat(lines)}}\n`

/** The categories and messages of what Biome finds, by file. */
function lint(files: Record<string, string>): Record<string, string[]> {
  using folder = temporaryFolder()
  cpSync(join(ROOT, 'biome.json'), join(folder.path, 'biome.json'))
  mkdirSync(join(folder.path, dirname(PLUGIN)))
  cpSync(join(ROOT, PLUGIN), join(folder.path, PLUGIN))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder.path, dirname(path)), { recursive: true })
    writeFileSync(join(folder.path, path), text)
  }
  const biome = join(ROOT, 'node_modules/.bin/biome')
  const words = ['lint', '--vcs-enabled=false', '--reporter=json']
  const { stdout } = Bun.spawnSync([biome, ...words], { cwd: folder.path })
  const { diagnostics } = JSON.parse(`${stdout}`) as {
    diagnostics: { category: string; message: string; location: { path: string } }[]
  }
  const found = Object.fromEntries(Object.keys(files).map((path) => [path, [] as string[]]))
  for (const { category, message, location } of diagnostics) {
    found[location.path]?.push(`${category}: ${message}`)
  }
  return found
}

test('Biome refuses a function of more than 70 lines, not counting blank ones', () => {
  const bad = ['src/a.ts', 'bench/load/a.ts', 'scripts/a.ts', 'test/support/a.ts']
  const files = {
    ...Object.fromEntries(bad.map((path) => [path, functionOf(FUNCTION_LINES_MAX + 1)])),
    'src/b.ts': functionOf(FUNCTION_LINES_MAX),
    'src/b.test.ts': functionOf(FUNCTION_LINES_MAX + 1),
  }
  const { 'src/b.ts': longest, 'src/b.test.ts': inTest, ...rest } = lint(files)
  expect([longest, inTest]).toEqual([[], []])
  for (const path of bad) {
    expect(rest[path]).toEqual([expect.stringContaining('too many lines (71)')])
  }
})

test('Biome refuses a spread of a literal, and accepts other spreads', () => {
  const bad = [
    'export const a = { x: 1, ...{ b: 2, c: 3 } }',
    'export const a = [...[{ x: 1 }, { x: 2 }], { x: 3 }]',
    'export const a = `$' + '{[...[1, 2], 3]}`',
    'export const a = () => ({ ...{ x: 1 } })',
  ]
  const fine = [
    'export const a = (b: object) => ({ ...b, x: 1 })',
    'export const a = (b: boolean) => [...(b ? [1] : []), 2]',
    'export const a = [...[1, 2].map(String), "3"]',
    'export const a = "...{ b: 2 }" // ...[1]',
  ]
  const file = (kind: string, at: number) => `src/${kind}-${at}.ts`
  const found = lint({
    ...Object.fromEntries(bad.map((text, at) => [file('bad', at), `${text}\n`])),
    ...Object.fromEntries(fine.map((text, at) => [file('fine', at), `${text}\n`])),
  })
  for (const at of bad.keys()) {
    expect(found[file('bad', at)]).toEqual([expect.stringContaining('A literal is spread')])
  }
  for (const at of fine.keys()) expect(found[file('fine', at)]).toEqual([])
})
