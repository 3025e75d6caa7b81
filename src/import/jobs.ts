import { LRUCache } from 'lru-cache'
import type { Account, AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { csvLine } from '../lib/csv.ts'
import type { Log } from '../lib/log.ts'
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
const JOBS_MAX = 100
/** Bytes of all files and reports that wait. */
const BYTES_MAX = 96 * 1024 * 1024
export const PROBLEMS_MAX = 20
/** Of a file that an owner has not uploaded: bounds the time of a check, and its report. */
export const ROWS_MAX = 100_000
/** Of one process: an import takes time from other requests. */
const RUNNING_MAX = 3

const INTERRUPTED =
  'The import was interrupted. Choose the file again: links that exist already are not changed.'

const TOO_MANY_ROWS = `has more than ${ROWS_MAX.toLocaleString('en')} rows.`

/** Imports of the dashboard, one for each account. They run in the background. */
export class ImportJobs {
  readonly #deps: ImportDeps & { log: Log }
  readonly #jobs = new LRUCache<AccountId, ImportJob>({
    max: JOBS_MAX,
    maxSize: BYTES_MAX,
    sizeCalculation: ({ file, report }) => file.blob.size + report.size + 1,
    ttl: KEPT_MS,
  })
  #running = 0
  #isClosed = false

  constructor(deps: ImportDeps & { log: Log }) {
    this.#deps = deps
  }

  find(accountId: AccountId): ImportJob | undefined {
    return this.#jobs.get(accountId)
  }

  /** Checks a file. Throws `import_running` while the last one of the account, or too many, run. */
  check(owner: Account, file: SourceFile, options: ImportOptions): void {
    const last = this.find(owner.id)
    const isRunning = last?.phase === 'checking' || last?.phase === 'importing'
    if (isRunning) throw new AppError('import_running')
    const report = new Blob()
    const job: ImportJob = { file, options, phase: 'checking', done: 0, problems: [], report }
    this.#begin(owner, job, async () => {
      job.found = await scan([file], { ...options, dryRun: true }, (rows) => {
        job.done = rows
        if (!file.isTrusted && rows > ROWS_MAX) throw new SourceError(TOO_MANY_ROWS)
      })
      await this.#run(owner, job, true)
      job.phase = 'checked'
    })
    this.#jobs.set(owner.id, job)
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
    if (this.#running >= RUNNING_MAX) throw new AppError('import_running')
    this.#running++
    job.done = 0
    work()
      .catch((error: unknown) => {
        const isExpected = error instanceof SourceError || error instanceof AppError
        if (!isExpected && !this.#isClosed) {
          this.#deps.log.error('import.failed', { account: owner.id }, error)
        }
        job.problem = isExpected ? (error as Error).message : INTERRUPTED
        job.phase = 'failed'
      })
      .finally(() => {
        this.#running--
      })
  }

  async #run(owner: Account, job: ImportJob, isDryRun: boolean): Promise<void> {
    job.problems = []
    job.done = 0
    const parts: string[] = []
    const options = { ...job.options, dryRun: isDryRun }
    const send: SendLines = (lines, dryRun) => {
      if (this.#isClosed) throw new Error('the service stops')
      return importLines(this.#deps, owner, lines, { dryRun })
    }
    const steps = run(job.found as Scan, options, send)
    job.summary = await writeReport(steps, job, (text) => parts.push(text))
    job.report = new Blob(parts)
    if (this.#jobs.peek(owner.id) !== job) return
    // The cache computes the size of a job only when it is new.
    this.#jobs.delete(owner.id)
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
