import { closeSync, openSync, writeSync } from 'node:fs'
import { findAccount } from '../../../src/accounts/keys.ts'
import { openDataFolder } from '../../../src/data-folder.ts'
import { HitCounts, journalFile, openJournal } from '../../../src/hits/hits.ts'
import { hitReads } from '../../../src/hits/store.ts'
import { createLog } from '../../../src/lib/log.ts'
import { secureRandom } from '../../../src/lib/random.ts'
import { temporaryFolderInMemory } from '../../support/folder.ts'
import { CrashDisk, type Remains, restore } from './crash-disk.ts'
import { type Calm, type Change, type State, type Told, WORKERS } from './recorded-run.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { TraceEvent } from './trace.ts'

export interface Recording {
  dataDir: string
  /** What was on the disk before. */
  files: ReadonlyMap<string, Uint8Array>
  events: readonly TraceEvent[]
  told: Told
}

interface CheckOptions {
  random: SeededRandom
  /** Disks to make of each boundary beside the one that has only what was synced. */
  tornDisks: number
  /** Boundaries further apart than this many are left out; 1 checks all. */
  every?: number
  /** Sees each folder after its check. */
  afterwards?: (folder: string, boundary: number) => Promise<void>
}

export interface Outcome {
  boundaries: number
  disks: number
  /** What a client was told and a disk did not hold, a line each. */
  broken: string[]
}

const PAGE_BYTES = 4096
/** Where a crash left no journal at all. */
const NEW_JOURNAL_ENTRIES = 64
const silent = createLog({ level: 'silent' })

/** Cuts the power just before each sync returns, and at the end, and looks at what is left. */
export async function cutPowerAtEverySync(
  recording: Recording,
  { random, tornDisks, every = 1, afterwards }: CheckOptions,
): Promise<Outcome> {
  const { events, dataDir } = recording
  const disk = new CrashDisk(dataDir, recording.files)
  const progress = new Progress(recording.told)
  const outcome: Outcome = { boundaries: 0, disks: 0, broken: [] }
  for (let at = 0; at <= events.length; at++) {
    const event = events[at]
    if (!event || event.kind === 'sync') {
      if (outcome.boundaries++ % every === 0 || !event) {
        const wanted: Remains[] = ['synced', ...Array<Remains>(tornDisks).fill('torn')]
        if (!event) wanted.push('written')
        for (const remains of wanted) {
          using folder = temporaryFolderInMemory()
          restore(disk.crash(remains, random), folder.path)
          if (remains !== 'synced') scatterHits(folder.path, progress, random)
          outcome.disks++
          const where = `event ${at} of ${events.length}, ${remains}`
          const found = judge(folder.path, progress)
          outcome.broken.push(...found.map((wrong) => `${where}: ${wrong}`))
          if (found.length === 0) await afterwards?.(folder.path, outcome.boundaries)
        }
      }
    }
    if (!event) break
    disk.apply(event, at)
    if (event.kind === 'send') progress.sent(event.text)
  }
  if (progress.unseen.length > 0) outcome.broken.push(`no trace of answer ${progress.unseen[0]}`)
  return outcome
}

/** A request id. */
const MARK = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g

/** What the clients knew at a moment of the run. */
export class Progress {
  readonly told: Told
  readonly #seen = new Set<string>()
  /** Redirects that were on their way to clients. */
  redirects = 0

  constructor(told: Told) {
    this.told = told
  }

  sent(text: string): void {
    // A large answer leaves in pieces, of which a header's value alone may be one.
    for (const [mark] of text.matchAll(MARK)) this.#seen.add(mark)
    for (const [, key = ''] of text.matchAll(/"api_key":"(\w+)"/g)) this.#seen.add(key)
    this.redirects += text.match(/^HTTP\/1.1 302/gm)?.length ?? 0
  }

  get keys(): string[] {
    const made = this.told.keys.filter((key) => this.#seen.has(key))
    return [...this.told.firstKeys, ...made]
  }

  get calms() {
    return this.told.calms.filter(({ mark }) => this.#seen.has(mark))
  }

  /** The states that a code may be in: the last that was told, and the one being made after it. */
  allowed(code: string): State[] {
    const changes = this.told.codes.get(code) ?? []
    const isTold = ({ marks }: Change) => marks.some((mark) => this.#seen.has(mark))
    const last = changes.findLastIndex(isTold)
    const before: State = 'deleted'
    return [
      changes[last]?.state ?? before,
      ...changes.slice(last + 1, last + 2).map((c) => c.state),
    ]
  }

  get unseen(): string[] {
    const marks = [...this.told.codes.values()].flat().flatMap(({ marks }) => marks)
    return [...marks, ...this.told.keys].filter((mark) => !this.#seen.has(mark))
  }
}

interface FoundLink {
  code: string
  url: string | null
  hash: Uint8Array
}

/** Opens a folder as a start does. Returns what is wrong with it, a line each. */
export function judge(folder: string, progress: Progress): string[] {
  const wrong: string[] = []
  try {
    const { db, accounts, hasher } = openDataFolder(folder)
    try {
      for (const key of progress.keys) {
        const keyUses = { note: () => {} }
        const deps = { data: { accounts }, hasher, clock: Date.now, random: secureRandom, keyUses }
        if (!findAccount(deps, key)) wrong.push(`the key ${key} does not work`)
      }
      const committed = hitReads(db).totals().redirects
      const journal = openJournal(db, folder, silent, NEW_JOURNAL_ENTRIES)
      const counted = new HitCounts(hitReads(db), journal).total()
      wrong.push(...judgeHits(committed, counted, progress))
      const links = db
        .query<FoundLink, []>('SELECT code, url, passcode_hash AS hash FROM links')
        .all()
      const hash = (passcode: string) => hasher.hash('passcode', passcode)
      wrong.push(...judgeLinks(new Map(links.map((link) => [link.code, link])), progress, hash))
      const twice = db
        .query(
          `SELECT url FROM links WHERE url_key IS NOT NULL
           GROUP BY account_id, url_key HAVING count(*) > 1`,
        )
        .all()
      for (const row of twice) wrong.push(`two codes of one URL: ${JSON.stringify(row)}`)
      const integrity = db.query('PRAGMA integrity_check').all()
      if (JSON.stringify(integrity) !== '[{"integrity_check":"ok"}]') {
        wrong.push(`integrity_check: ${JSON.stringify(integrity)}`)
      }
    } finally {
      db.close()
    }
  } catch (error) {
    wrong.push(`it does not open: ${error instanceof Error ? error.message : error}`)
  }
  return wrong
}

function judgeLinks(
  links: ReadonlyMap<string, FoundLink>,
  progress: Progress,
  hash: (passcode: string) => Uint8Array,
): string[] {
  const wrong: string[] = []
  const fits = (link: FoundLink | undefined, state: State) => {
    if (state === 'deleted' || !link) return state === 'deleted' && !link
    return link.url === state.url && Buffer.compare(link.hash, hash(state.passcode)) === 0
  }
  for (const code of progress.told.codes.keys()) {
    const link = links.get(code)
    const states = progress.allowed(code)
    if (!states.some((state) => fits(link, state))) {
      const found = link ? `it is ${short(link.url)}` : 'it is not there'
      const should = states.map((state) => (state === 'deleted' ? state : short(state.url)))
      wrong.push(`${code} should be ${should.join(' or ')}: ${found}`)
    }
  }
  for (const code of links.keys()) {
    if (!progress.told.codes.has(code)) wrong.push(`${code} was never told of`)
  }
  for (const bulk of progress.told.bulks) {
    const there = bulk.filter((code) => links.has(code)).length
    if (there !== 0 && there !== bulk.length) wrong.push(`${there} of a bulk of ${bulk.length}`)
  }
  return wrong
}

const short = (url: string | null) => url?.slice(0, 30) ?? 'reserved'

/** A loss of power may take hits that were not committed, and makes none. */
function judgeHits(committed: number, counted: number, progress: Progress): string[] {
  const floor = Math.max(0, ...progress.calms.map((calm) => calm.committed))
  const most = progress.redirects + WORKERS
  const wrong: string[] = []
  if (committed < floor) wrong.push(`${committed} redirects are committed of ${floor}`)
  if (counted < committed || counted > most) {
    wrong.push(
      `${counted} redirects are counted: ${committed} were committed, ${most} sent at most`,
    )
  }
  return wrong
}

/** The kernel writes the mapped journal back when and where it likes: pages of any age. */
function scatterHits(folder: string, { calms }: Progress, random: SeededRandom): void {
  const length = Math.max(0, ...calms.map(({ journal }) => journal.length))
  if (length === 0) return
  const file = openSync(journalFile(folder), 'r+')
  for (let at = PAGE_BYTES; at < length; at += PAGE_BYTES) {
    const { journal } = calms[random.below(calms.length)] as Calm
    const page = journal.subarray(at, at + PAGE_BYTES)
    if (random.chance(0.7)) writeSync(file, page, 0, page.length, at)
  }
  closeSync(file)
}
