/**
 * Runs all checks of a change, even after a failure, and prints which ones failed, and how many
 * lines the tests have for each line of the program.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const CHECKS = [
  { name: 'types', args: ['node_modules/.bin/tsc', '--noEmit'] },
  { name: 'style', args: ['node_modules/.bin/biome', 'check', '--error-on-warnings'] },
  { name: 'tests', args: ['run', 'test'] },
]

const failed: string[] = []
for (const { name, args } of CHECKS) {
  console.log(`\n== ${name}: bun ${args.join(' ')}`)
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: ROOT,
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  if ((await child.exited) !== 0) failed.push(name)
}
const files = [...new Bun.Glob('{src,test}/**/*.ts').scanSync(ROOT)]
const isOfTests = (path: string) => path.startsWith('test/') || path.endsWith('.test.ts')
const linesOf = (paths: readonly string[]) =>
  paths.reduce(
    (sum, path) => sum + readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1,
    0,
  )
const [tests, program] = [files.filter(isOfTests), files.filter((path) => !isOfTests(path))].map(
  linesOf,
) as [number, number]
const ratio = (tests / program).toFixed(2)
console.log(`\nLines: program ${program}, tests with their support ${tests}, ratio ${ratio}`)
console.log(failed.length === 0 ? '\nAll checks passed.' : `\nFailed: ${failed.join(', ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1
