// How long does the service take from start to first redirect, and how much memory does it use?
// npm run bench -- start --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { atMost, main, measureVariants, type Plan, value } from '../lib/figures.ts'
import { createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { type MillionFolder, scatteredLinks } from '../lib/million.ts'
import { followLink } from '../lib/redirect-check.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, spawnServer, startServer } from '../lib/server.ts'
import { hopcode, type Link, WITHOUT_LIMITS } from '../lib/variants.ts'
import { millionWorkspace } from '../lib/workspace.ts'

const POLL_MS = 1
const DEADLINE_MS = 20_000
/** Codes of connection errors while the port is closed, or opened to see whether it is free. */
const NOT_OPEN: readonly string[] = ['ECONNREFUSED', 'ECONNRESET']
/** Pause between the start of a service and reading its memory. */
const SETTLING_MS = 1000

const METRICS: Metric[] = [
  { key: 'firstMs', label: 'start to first redirect, ms', digits: 0, ratio: true },
  { key: 'cpuMs', label: 'CPU until then, ms', digits: 0, ratio: true },
  { key: 'readyMs', label: 'start until all endpoints answer, ms', digits: 0, ratio: true },
  { key: 'resident', label: 'memory after the start, MiB', digits: 0, ratio: true },
  { key: 'anonymous', label: '… of it the process’s own, MiB', digits: 0, ratio: true },
  { key: 'mapped', label: '… of it mapped files, MiB', digits: 0, ratio: true },
]

interface Variant {
  name: string
  folder: MillionFolder
  link: Link
}

export const start: Scenario = {
  name: 'start',
  question: 'How long is the time from start to first redirect, with a million links?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await millionWorkspace(options, say)
  const { program, folder: million } = workspace
  const [link] = scatteredLinks(million, 1)
  if (!link) throw new Error('a million links hold none')
  const small = await createSmall(program, join(workspace.temporaryPath, 'small'))
  const contenders: Variant[] = [
    { name: 'one link', ...small },
    { name: 'a million', folder: million, link },
  ]
  // The first start creates the journal and loads the files into the page cache.
  for (const { folder } of contenders) await once(hopcode(program, folder.path, WITHOUT_LIMITS))
  const plan: Plan<Variant> = {
    variants: contenders,
    measure: (variant) => measureRound(program, variant),
    baseline: 'one link',
    metrics: METRICS,
    figures: {
      'start to first redirect, a million links': main(
        value('a million', 'firstMs', ' ms', 0, atMost(200, 100)),
      ),
      'start until all endpoints answer, a million links': value('a million', 'readyMs', ' ms'),
      'memory after the start, a million links': main(
        value('a million', 'resident', ' MiB', 0, atMost(90)),
      ),
    },
    notes: [
      `Asked every ${POLL_MS} ms for a redirect, from before the process began. Its files are in ` +
        'the page cache of the operating system.',
      `Memory is read ${SETTLING_MS / 1000} s later; mapped files (the program itself, the hit ` +
        'journal) are pages that the kernel may take back.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function createSmall(program: string[], path: string) {
  mkdirSync(path)
  const apiKey = createAccount(program, path)
  await using server = await startServer(hopcode(program, path, WITHOUT_LIMITS))
  const client = new HopcodeClient(server.origin, apiKey)
  const [link] = await client.createLinks(['https://example.com/the/only/one'])
  if (!link) throw new Error('no link was made')
  await server.stop()
  return { folder: { path, apiKey }, link }
}

async function once(launch: Launch): Promise<void> {
  await using server = await startServer(launch)
  await server.stop()
}

async function measureRound(program: string[], { folder, link }: Variant): Promise<RoundResult> {
  const launch = hopcode(program, folder.path, WITHOUT_LIMITS)
  await using server = spawnServer(launch)
  const firstMs = await firstRedirect(server, link)
  const cpuMs = server.cpuSeconds() * 1000
  const readyMs = await untilReady(server)
  await Bun.sleep(SETTLING_MS)
  const memory = server.memory()
  await server.stop()
  return { figures: { firstMs, cpuMs, readyMs, ...memory } }
}

/** Milliseconds since the start. Throws unless the first response is the right redirect. */
export function firstRedirect(server: Server, link: Link): Promise<number> {
  return firstAnswer(server, () => followLink(server, link).then(() => true))
}

/** Milliseconds from the start until all endpoints answer. */
function untilReady(server: Server): Promise<number> {
  return firstAnswer(server, async () => (await fetch(`${server.origin}/-/ready`)).ok)
}

/** Repeats `ask` until it resolves with true, also while the port is closed. */
async function firstAnswer(server: Server, ask: () => Promise<boolean>): Promise<number> {
  while (server.ageSeconds * 1000 < DEADLINE_MS) {
    const isAnswered = await ask().catch((error: { code?: string }) => {
      if (NOT_OPEN.includes(error.code ?? '')) return false
      throw error
    })
    if (isAnswered) return server.ageSeconds * 1000
    await Bun.sleep(POLL_MS)
  }
  throw new Error(`${server.name} gave no answer within ${DEADLINE_MS} ms`)
}
