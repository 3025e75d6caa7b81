import { expect } from 'bun:test'
import { join } from 'node:path'
import { JournalFile } from '../../src/hot/journal-file.ts'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder, temporaryFolderInMemory } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'
import { testWith } from '../support/tools.ts'
import { cutPowerAtEverySync, type Recording } from './lib/crash-check.ts'
import { buildMutant, type Mutation } from './lib/mutant.ts'
import { Clients, filesOf, tracedKey } from './lib/recorded-run.ts'
import { SeededRandom } from './lib/seeded-random.ts'
import { readTraces, type TraceEvent, traced } from './lib/trace.ts'

const testTraced = testWith('strace')

/**
 * What was answered outlives a loss of power. A run of the program is recorded with strace, system
 * call by system call; then the power is cut, on a model of the disk, just before each sync
 * returns: what was not synced is lost, or what is left of it is torn. Each disk is opened as a
 * start opens it and compared with what the clients had been told up to then.
 */

const ROUNDS = Number(process.env.POWER_LOSS_ROUNDS ?? 1)
const OPERATIONS = 6
const TORN_DISKS = Number(process.env.POWER_LOSS_TORN_DISKS ?? 1)
/** Small, so that a run laps it and its image is quick to write. */
const JOURNAL_ENTRIES = 256
const seeded = `(seed ${SEED})`

const PROGRAMS: { name: string; mutation?: Mutation }[] = [
  { name: 'as it is' },
  {
    // The program's own log is folded in too seldom for a short run to meet it.
    name: 'with its log folded in all the time',
    mutation: {
      file: 'src/db/checkpoint.ts',
      changes: [
        [/PAGES_MAX = [\d_]+/g, 'PAGES_MAX = 40'],
        [/PAGES_AT_REST = [\d_]+/g, 'PAGES_AT_REST = 10'],
        [/PAGES_MORE = [\d_]+/g, 'PAGES_MORE = 10'],
      ],
    },
  },
]

testTraced.each(PROGRAMS)(
  `$name, no acknowledged write is lost when the power is cut at any sync ${seeded}`,
  async ({ mutation }) => {
    using folder = temporaryFolderInMemory()
    using source = temporaryFolder()
    const random = new SeededRandom(SEED)
    const program = mutation && buildMutant(source.path, mutation)
    const recording = await record(folder.path, random, { rounds: ROUNDS, program })
    if (mutation) expect(foldings(recording)).toBeGreaterThan(ROUNDS)
    let started = 0
    const outcome = await cutPowerAtEverySync(recording, {
      random,
      tornDisks: TORN_DISKS,
      // A start of the whole program takes longer than a look: one in a while.
      async afterwards(path, boundary) {
        if (boundary % 50 !== 10) return
        await using service = await Service.start({ DATA_DIR: path })
        expect((await service.fetch('/api/status')).status).toBe(200)
        started++
      },
    })
    const { boundaries, disks } = outcome
    console.log(`power cut at ${boundaries} syncs, ${disks} disks, ${started} starts ${seeded}`)
    expect(outcome.broken.slice(0, 10)).toEqual([])
    expect(outcome.boundaries).toBeGreaterThan(ROUNDS * OPERATIONS * 2)
    expect(started).toBeGreaterThan(0)
  },
  3_600_000,
)

/** How often the database file was synced before the last answer left. */
function foldings({ events, dataDir }: Recording): number {
  const last = events.findLastIndex(({ kind }) => kind === 'send')
  const isFolding = (event: TraceEvent) =>
    event.kind === 'sync' && event.path === join(dataDir, 'hopcode.db')
  return events.slice(0, last).filter(isFolding).length
}

testTraced(
  `a first account and its first links outlive a loss of power ${seeded}`,
  async () => {
    using folder = temporaryFolderInMemory()
    const random = new SeededRandom(SEED)
    const dataDir = join(folder.path, 'data')
    const env = { DATA_DIR: dataDir }
    const traces = ['command', 'service'].map((name) => join(folder.path, name))
    const [commandTrace = '', serviceTrace = ''] = traces
    const create = ['account', 'create', '--email', 'first@example.com', '--plan', 'enterprise']
    const key = await tracedKey(create, env, commandTrace)
    const service = await Service.start(env, traced(serviceTrace))
    const clients = new Clients(service, dataDir, key, random)
    const told = { ...clients.told, firstKeys: [], keys: [key] }
    await clients.round(1)
    expect(await service.end('SIGTERM')).toBe(0)
    const recording = { dataDir, files: new Map(), events: await readTraces(traces), told }
    const { broken } = await cutPowerAtEverySync(recording, { random, tornDisks: TORN_DISKS })
    expect(broken.slice(0, 10)).toEqual([])
  },
  600_000,
)

testTraced(`with synchronous=NORMAL writes are lost, and this test sees it ${seeded}`, async () => {
  using folder = temporaryFolderInMemory()
  using source = temporaryFolder()
  const random = new SeededRandom(SEED)
  const program = buildMutant(source.path, {
    file: 'src/db/open.ts',
    changes: [
      [/PRAGMA synchronous = FULL/g, 'PRAGMA synchronous = NORMAL'],
      [/synchronous: 2,/g, 'synchronous: 1,'],
    ],
  })
  const recording = await record(folder.path, random, { rounds: 1, program })
  const { broken } = await cutPowerAtEverySync(recording, { random, tornDisks: 0 })
  expect(broken.join('\n')).toContain('it is not there')
})

interface RecordOptions {
  rounds: number
  program?: string | undefined
}

/** A run of the program from a start to a stop, with a key that is rotated meanwhile. */
async function record(
  folder: string,
  random: SeededRandom,
  { rounds, program }: RecordOptions,
): Promise<Recording> {
  const dataDir = join(folder, 'data')
  const traces = ['service', 'command'].map((name) => join(folder, name))
  const [serviceTrace = '', commandTrace = ''] = traces
  const env = {
    ...unlimited(dataDir),
    HIT_FLUSH_MS: '10',
  }
  const key = await makeAccount(env)
  JournalFile.open(join(dataDir, 'hits.journal'), JOURNAL_ENTRIES).close()
  const files = filesOf(dataDir)
  const service = await Service.start(env, traced(serviceTrace), program)
  const clients = new Clients(service, dataDir, key, random)
  const { told } = clients
  for (let round = 0; round < rounds; round++) {
    await clients.round(OPERATIONS)
    if (round > 0) continue
    const rotate = ['key', 'rotate', '--email', 'enterprise@example.com']
    told.keys.push(await tracedKey(rotate, env, commandTrace))
  }
  expect(await service.end('SIGTERM')).toBe(0)
  return { dataDir, files, events: await readTraces(traces), told }
}
