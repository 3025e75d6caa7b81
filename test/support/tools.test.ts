import { expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from './folder.ts'

/** Stands in for apt-get: it knows no package before an update, and fails beside another of it. */
const APT = `#!/bin/sh
cd "\${0%/*}" || exit 1
mkdir busy || { echo "two at a time" >>log; exit 100; }
sleep 0.1
rmdir busy
case "$*" in
  *update*) touch updated ;;
  *) [ -e updated ] && echo "\${*##* }" >>log ;;
esac
`

test('test files that need packages at the same time get them one after the other', async () => {
  using folder = temporaryFolder()
  const log = join(folder.path, 'log')
  writeFileSync(join(folder.path, 'apt-get'), APT, { mode: 0o755 })
  const env = { ...process.env, PATH: `${folder.path}:${process.env.PATH}`, TMPDIR: folder.path }
  const children = ['one', 'two', 'three'].map((name) => {
    const source = `import { install } from './tools.ts'; install('${name}')`
    return Bun.spawn([process.execPath, '-e', source], { cwd: import.meta.dir, env })
  })
  expect(await Promise.all(children.map((child) => child.exited))).toEqual([0, 0, 0])
  const installed = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').sort() : []
  // Only root can install.
  expect(installed).toEqual(process.getuid?.() === 0 ? ['one', 'three', 'two'] : [])
})

const ROOT = dirname(dirname(import.meta.dir))

test.each([
  { where: 'on a developer’s machine', CI: '', code: 0 },
  { where: 'in CI, where that fails the run', CI: 'true', code: 1 },
])('tests without their tool are skipped and listed at the end, $where', ({ CI, code }) => {
  const env = { ...process.env, CI, WITHOUT_TOOLS: 'browser' }
  const words = [process.execPath, 'scripts/test.ts', './test/e2e/docs-page.test.ts']
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, { cwd: ROOT, env })
  expect(`${stderr}`).toContain('\n 2 skip\n')
  expect(`${stdout}`).toContain('\n  browser (apt-get install chromium ')
  expect(`${stdout}`).toContain('): test/e2e/docs-page.test.ts\n')
  expect(exitCode).toBe(code)
})

test('npm test ends with the code of the tests', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'fails.test.ts')
  writeFileSync(
    file,
    "import { test } from 'bun:test'\ntest('fails', () => { throw new Error() })\n",
  )
  const { exitCode } = Bun.spawnSync([process.execPath, 'scripts/test.ts', file], { cwd: ROOT })
  expect(exitCode).toBe(1)
})
