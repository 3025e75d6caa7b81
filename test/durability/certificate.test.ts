import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { eventually } from '../support/app.ts'
import { command, Service, type Settings } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { openTls } from '../support/https.ts'
import { acmeSettings, Pebble } from '../support/pebble.ts'
import { freePort } from '../support/ports.ts'
import { SEED } from '../support/seed.ts'
import { testWith } from '../support/tools.ts'

/** The certificate of a service that is killed: orders are not repeated, and files are whole. */

/** The long form: npm run test:durability -- certificate */
const ROUNDS = Number(process.env.CERTIFICATE_ROUNDS ?? 3)
const RESTARTS = Number(process.env.CERTIFICATE_RESTARTS ?? 3)
/** An order takes about this long. */
const ORDER_MS = 1500
const TEST_MS = 3_600_000

const settingsOf = (pebble: Pebble, dataDir: string): Settings => ({
  ...acmeSettings(pebble),
  DATA_DIR: dataDir,
  HTTPS_PORT: String(freePort()),
  NODE_EXTRA_CA_CERTS: pebble.authorityFile,
})

const start = () => Pebble.start({ httpPort: freePort() })

/** Resolves when the service serves a certificate of the authority. */
async function untilServed(pebble: Pebble, { HTTPS_PORT }: Settings): Promise<void> {
  const root = await pebble.root()
  await eventually('the certificate is served', async () => {
    const opened = await openTls(`https://127.0.0.1:${HTTPS_PORT}`, root).catch(() => undefined)
    opened?.[Symbol.dispose]()
    return opened !== undefined
  })
}

interface Stored {
  orders: { at: number }[]
}

/** Has the last minute pass, after which the service may order again. */
function letAMinutePass(dataDir: string): void {
  const file = join(dataDir, 'certificates/state.json')
  if (!existsSync(file)) return
  const states = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Stored>
  for (const { orders } of Object.values(states)) for (const order of orders) order.at -= 2 * MINUTE
  writeFileSync(file, JSON.stringify(states))
}

testWith('pebble')(
  'a kill at any moment of an order costs one order at most, and leaves whole files',
  async () => {
    const random = seededRandom(SEED)
    let kept = 0
    for (let round = 0; round < ROUNDS; round++) {
      await using pebble = await start()
      using folder = temporaryFolder()
      const env = settingsOf(pebble, folder.path)
      await using first = await Service.start(env)
      await Bun.sleep(random() * ORDER_MS)
      await first.end('SIGKILL')
      letAMinutePass(folder.path)
      await using second = await Service.start(env)
      await untilServed(pebble, env)
      if (pebble.orders === 1) kept++
      expect(pebble.orders).toBeLessThanOrEqual(2)
      for (const name of readdirSync(join(folder.path, 'certificates'))) {
        const file = join(folder.path, 'certificates', name)
        expect(statSync(file).mode & 0o777).toBe(0o600)
      }
      await second.end('SIGTERM')
      expect(await second.errors).not.toContain('certificate.damaged')
    }
    console.log(`${kept} of ${ROUNDS} kills cost no order`)
  },
  TEST_MS,
)

testWith('pebble')(
  'a service that is killed again and again orders nothing with a certificate, and once without',
  async () => {
    for (const { address, orders } of [
      { address: '127.0.0.1', orders: 1 },
      { address: '127.0.0.9', orders: 1 },
    ]) {
      await using pebble = await start()
      await pebble.pointTo('go.example', address)
      using folder = temporaryFolder()
      const env = settingsOf(pebble, folder.path)
      const state = join(folder.path, 'certificates/state.json')
      await using first = await Service.start(env)
      await eventually('the order is over', () => {
        return existsSync(state) && /"result":"(issued|failed)"/.test(readFileSync(state, 'utf8'))
      })
      await first.end('SIGKILL')
      for (let i = 0; i < RESTARTS; i++) {
        await using service = await Service.start(env)
        await Bun.sleep(1200)
        await service.end('SIGKILL')
      }
      expect(pebble.orders).toBe(orders)
    }
  },
  TEST_MS,
)

testWith('pebble')(
  'a backup has no private key, and a restore leaves the certificate alone',
  async () => {
    await using pebble = await start()
    using folder = temporaryFolder()
    const env = settingsOf(pebble, join(folder.path, 'data'))
    await using service = await Service.start(env)
    await untilServed(pebble, env)
    const file = join(folder.path, 'backup')
    expect(await command(['backup', file], env)).toMatchObject({ code: 0 })
    await service.end('SIGTERM')
    const key = join(folder.path, 'data/certificates/current.pem')
    const before = readFileSync(key, 'utf8')
    expect(before).toContain('PRIVATE KEY')
    expect(await command(['restore', file], env)).toMatchObject({ code: 0 })
    expect(readFileSync(key, 'utf8')).toBe(before)
    const other = join(folder.path, 'other')
    expect(await command(['restore', file], { ...env, DATA_DIR: other })).toMatchObject({ code: 0 })
    const files = [...new Bun.Glob('**/*').scanSync({ cwd: other, dot: true })]
    expect(files).toContain('hopcode.db')
    for (const name of files) {
      expect(readFileSync(join(other, name)).includes('PRIVATE KEY')).toBe(false)
    }
  },
  TEST_MS,
)
