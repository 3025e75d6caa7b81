/** Runs all checks of a change, even after a failure, and prints which ones failed. */
const CHECKS = [
  { name: 'types', args: ['node_modules/.bin/tsc', '--noEmit'] },
  { name: 'style', args: ['node_modules/.bin/biome', 'check', '--error-on-warnings'] },
  { name: 'tests', args: ['run', 'test'] },
]

const failed: string[] = []
for (const { name, args } of CHECKS) {
  console.log(`\n== ${name}: bun ${args.join(' ')}`)
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: `${import.meta.dir}/..`,
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  if ((await child.exited) !== 0) failed.push(name)
}
console.log(failed.length === 0 ? '\nAll checks passed.' : `\nFailed: ${failed.join(', ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1
