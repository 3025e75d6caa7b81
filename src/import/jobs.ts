import { LRUCache } from 'lru-cache'
import type { Account, AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { csvLine } from '../lib/csv.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import type { Log } from '../lib/log.ts'
import { type Hold, SharedBudget } from '../limits/shared-budget.ts'
import { type ImportDeps, importLines } from './lines.ts'
import { isFine } from './outcomes.ts'
import {
  type ImportedRow,
  type ImportOptions,
  run,
  type Scan,
  type SendLines,
  type Summary,
  scan,
} from './plan.ts'
import { SourceError, type SourceFile } from './source.ts'

/** An import in the dashboard: of one file, checked first. */
export interface ImportJob {
  file: SourceFile
  /** Memory of the file and the report. */
  hold: Hold
  options: ImportOptions
  phase: 'checking' | 'checked' | 'importing' | 'done' | 'failed'
  /** Why it failed, for the user. */
  problem?: string
  /** Known after the first reading of the file. */
  found?: Scan
  /** Rows of this phase, as far as it is. */
  done: number
  /** Of the last phase. */
  summary?: Summary
  /** The first rows that were refused. */
  problems: ImportedRow[]
  /** CSV with the result of each row. */
  report: Blob
}

/** Time that a file waits for its import, and a report for its download. */
const KEPT_MS = 60 * 60 * 1000
const JOBS_MAX = 1000
/** Bytes of files and reports that wait: those of owners, and those of all others. */
const BYTES_MAX = 48 * 1024 * 1024
export const PROBLEMS_MAX = 20
/** Of a file that an owner has not uploaded: bounds the time of a check, and its report. */
export const ROWS_MAX = 100_000
/** Checks and imports that run at once, of owners and of all others: further ones wait. */
const RUNNING_MAX = { owners: 1, others: 2 }

const INTERRUPTED =
  'The import was interrupted. Choose the file again: links that exist already are not changed.'

const TOO_MANY_ROWS = `has more than ${ROWS_MAX.toLocaleString('en')} rows.`

/** Jobs of one kind of accounts: queued by account, and in the memory of this kind. */
const newPool = (atOnce: number) => ({
  queue: new FairQueue({ atOnce, places: JOBS_MAX, full: () => new AppError('import_running') }),
  budget: new SharedBudget(BYTES_MAX),
})

/** Imports of the dashboard, one for each account. They run in the background. */
export class ImportJobs {
  readonly #deps: ImportDeps & { log: Log }
  readonly #jobs = new LRUCache<AccountId, ImportJob>({
    max: JOBS_MAX,
    ttl: KEPT_MS,
    dispose: ({ hold }) => hold[Symbol.dispose](),
  })
  readonly #pools = { owners: newPool(RUNNING_MAX.owners), others: newPool(RUNNING_MAX.others) }
  #isClosed = false

  constructor(deps: ImportDeps & { log: Log }) {
    this.#deps = deps
  }

  find(accountId: AccountId): ImportJob | undefined {
    return this.#jobs.get(accountId)
  }

  /** Checks a file. Throws `import_running` while the last one of the account runs. */
  check(owner: Account, file: SourceFile, options: ImportOptions): void {
    const last = this.find(owner.id)
    const isRunning = last?.phase === 'checking' || last?.phase === 'importing'
    if (isRunning) throw new AppError('import_running')
    this.#jobs.delete(owner.id)
    const hold = this.#poolOf(file).budget.hold(owner.id, () => this.#jobs.delete(owner.id))
    hold.take(file.blob.size)
    const report = new Blob()
    const job: ImportJob = { file, hold, options, phase: 'checking', done: 0, problems: [], report }
    this.#jobs.set(owner.id, job)
    this.#begin(owner, job, async () => {
      job.found = await scan([file], { ...options, dryRun: true }, (rows) => {
        job.done = rows
        if (!file.isTrusted && rows > ROWS_MAX) throw new SourceError(TOO_MANY_ROWS)
      })
      await this.#run(owner, job, true)
      job.phase = 'checked'
    })
  }

  /** Imports the file that was checked. False if there is none. */
  start(owner: Account): boolean {
    const job = this.find(owner.id)
    if (job?.phase !== 'checked') return false
    this.#begin(owner, job, async () => {
      await this.#run(owner, job, false)
      job.phase = 'done'
    })
    job.phase = 'importing'
    return true
  }

  close(): void {
    this.#isClosed = true
  }

  #begin(owner: Account, job: ImportJob, work: () => Promise<void>): void {
    job.done = 0
    const { queue } = this.#poolOf(job.file)
    queue
      .run(owner.id, work, () => this.#requireWanted(job))
      .catch((error: unknown) => {
        const isExpected = error instanceof SourceError || error instanceof AppError
        if (!isExpected && !this.#isClosed) {
          this.#deps.log.error('import.failed', { account: owner.id }, error)
        }
        job.problem = isExpected ? (error as Error).message : INTERRUPTED
        job.phase = 'failed'
      })
  }

  #poolOf({ isTrusted }: SourceFile) {
    return isTrusted ? this.#pools.owners : this.#pools.others
  }

  /** Throws if the service stops or others need the memory of the job. */
  #requireWanted({ hold }: ImportJob): void {
    if (this.#isClosed) throw new Error('the service stops')
    hold.requireHeld()
  }

  async #run(owner: Account, job: ImportJob, isDryRun: boolean): Promise<void> {
    job.problems = []
    job.done = 0
    const parts: string[] = []
    const options = { ...job.options, dryRun: isDryRun }
    const send: SendLines = (lines, dryRun) => {
      this.#requireWanted(job)
      return importLines(this.#deps, owner, lines, { dryRun })
    }
    const steps = run(job.found as Scan, options, send)
    job.summary = await writeReport(steps, job, (text) => parts.push(text))
    if (this.#jobs.peek(owner.id) !== job) return
    const report = new Blob(parts)
    job.hold.take(report.size - job.report.size)
    job.report = report
    // Renews the time that it is kept.
    this.#jobs.set(owner.id, job)
  }
}

/** Runs an import to its end, and writes a CSV line for each row. */
export async function writeReport(
  steps: ReturnType<typeof run>,
  state: Pick<ImportJob, 'done' | 'problems'>,
  write: (text: string) => void,
): Promise<Summary> {
  write(csvLine(['line', 'path', 'outcome', 'code', 'message']))
  for (;;) {
    const { done, value } = await steps.next()
    if (done) return value
    state.done += value.length
    const bad = value.filter(({ outcome }) => !isFine(outcome))
    state.problems.push(...bad.slice(0, PROBLEMS_MAX - state.problems.length))
    write(value.map(reportLine).join(''))
  }
}

const reportLine = ({ line, path, outcome, code, message }: ImportedRow): string =>
  csvLine([line, path, outcome, code, message])
