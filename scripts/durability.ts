/**
 * The long form of the tests of power loss, kill -9, failing disks and stops, run one after the
 * other to the end: npm run test:durability -- [--seed N] [--times N] [name ...]. Each time has a
 * seed of its own, counted up from the first; a failure names the one to give again.
 */
import { parseArgs } from 'node:util'

const SEED_MAX = 2 ** 31

/** What a test file takes from the environment to be long. */
const LONG: Record<string, Record<string, string>> = {
  'power-loss': { POWER_LOSS_ROUNDS: '12', POWER_LOSS_TORN_DISKS: '4' },
  kill: { KILL_ROUNDS: '40' },
  'io-faults': { FAULT_ROUNDS: '40' },
  'full-disk': {},
  stop: {},
  clock: {},
  'damaged-files': {},
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, times: { type: 'string', default: '3' } },
})
const first = Number(values.seed ?? process.env.DURABILITY_SEED ?? Math.random() * SEED_MAX)
const names = positionals.length > 0 ? positionals : Object.keys(LONG)
const unknown = names.filter((name) => !(name in LONG))
if (unknown.length > 0 || !Number.isFinite(first)) {
  console.error(`Names: ${Object.keys(LONG).join(', ')}. Seeds are whole numbers.`)
  process.exit(2)
}

const failed: string[] = []
for (let time = 0; time < Number(values.times); time++) {
  const seed = (Math.floor(first) + time) % SEED_MAX
  for (const name of names) {
    console.log(`\n== ${name}, seed ${seed}`)
    const file = `test/durability/${name}.test.ts`
    const child = Bun.spawn([process.execPath, 'test', `./${file}`, '--timeout', '3600000'], {
      cwd: `${import.meta.dir}/..`,
      env: { ...process.env, ...LONG[name], DURABILITY_SEED: String(seed) },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    if ((await child.exited) !== 0) failed.push(`${name} --seed ${seed} --times 1`)
  }
}
for (const words of failed) console.log(`Failed: npm run test:durability -- ${words}`)
console.log(failed.length === 0 ? '\nNothing was lost.' : `\n${failed.length} failed.`)
process.exitCode = failed.length === 0 ? 0 : 1
