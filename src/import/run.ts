import { csvLine } from '../lib/csv.ts'
import { addStored, NOTHING_STORED, type Stored } from '../links/quota.ts'
import type { FormatName } from './formats.ts'
import { isCreated, isFine, OUTCOMES, type Outcome, type RowResult } from './outcomes.ts'
import type { Found, Reading, ReadRow } from './plan.ts'

/** Sends what was read to a service, and says what became of each row. */

/** A row of a file with its result. */
export type ImportedRow = Omit<ReadRow<never>, 'sent' | keyof RowResult> & RowResult

export interface Summary {
  format: FormatName
  rows: number
  counts: Partial<Record<Outcome, number>>
  /** Those of the links that were created, as is `lost`. */
  hits: number
  /** How many links had each thing that Hopcode does not have. */
  lost: Record<string, number>
  /** See `Found`. */
  unread: readonly string[]
}

/** Creates links, or in a dry run finds out what would become of them. See `importRows`. */
export type Send<Sent> = (
  rows: readonly Sent[],
  /** What earlier calls of a dry run would have stored. */
  before: Stored,
) => Promise<{ results: readonly RowResult[]; stored: Stored }>

interface RunOptions<Sent> {
  send: Send<Sent>
  onRead?: (rows: number) => void
  /** Throws to stop the import before anything is sent. */
  onFound?: (found: Found) => void
}

/** Yields one result for each row, a batch at a time. Returns their sum. */
export async function* runImport<Sent>(
  readings: AsyncGenerator<Reading<Sent>, void>,
  { send, onRead, onFound }: RunOptions<Sent>,
): AsyncGenerator<ImportedRow[], Summary> {
  const summary: Summary = { format: 'csv', rows: 0, counts: {}, hits: 0, lost: {}, unread: [] }
  const note = (rows: readonly ImportedRow[]): ImportedRow[] => {
    for (const { outcome } of rows) summary.counts[outcome] = (summary.counts[outcome] ?? 0) + 1
    summary.rows += rows.length
    return [...rows]
  }
  let before = NOTHING_STORED
  const sendAll = async (rows: readonly ReadRow<Sent>[]): Promise<ImportedRow[]> => {
    const sent = rows.flatMap((row) => (row.sent === undefined ? [] : [row.sent]))
    const { results, stored } = sent.length > 0 ? await send(sent, before) : NOTHING_SENT
    before = addStored(before, stored)
    let next = 0
    return rows.map((row) => {
      const imported = importedRow(row, row.sent === undefined ? undefined : results[next++])
      if (isCreated(imported.outcome)) {
        summary.hits += row.hits ?? 0
        for (const name of row.lost ?? []) summary.lost[name] = (summary.lost[name] ?? 0) + 1
      }
      return imported
    })
  }
  let pending: Promise<ImportedRow[]> = Promise.resolve([])
  for await (const reading of readings) {
    if ('read' in reading) onRead?.(reading.read)
    else if ('found' in reading) {
      const { format, unread } = reading.found
      Object.assign(summary, { format, unread })
      onFound?.(reading.found)
    } else if ('rows' in reading) {
      // The next rows are read while the service works.
      const done = await pending
      pending = sendAll(reading.rows)
      pending.catch(() => {})
      yield note(done)
    }
  }
  yield note(await pending)
  return summary
}

const NOTHING_SENT = { results: [], stored: NOTHING_STORED }

/** `result`: absent for a row that was not sent, which has one. */
function importedRow(
  { sent: _, ...row }: ReadRow<unknown>,
  result: RowResult | undefined,
): ImportedRow {
  const { outcome, code = null, message = '' } = result ?? row
  if (!outcome) throw new Error('each row that was sent has a result')
  const parts = [message, ...(isCreated(outcome) ? row.notes : [])]
  return { ...row, outcome, code, message: parts.filter((part) => part !== '').join('. ') }
}

export const countRows = ({ counts }: Summary, isCounted: (outcome: Outcome) => boolean): number =>
  OUTCOMES.filter(isCounted).reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0)

/** Rows that are not imported, shown with the result. */
export const PROBLEMS_MAX = 20

/** Runs an import to its end, and writes a CSV line for each row. */
export async function writeReport(
  steps: AsyncGenerator<ImportedRow[], Summary>,
  state: { done: number; problems: ImportedRow[] },
  write: (text: string) => void,
): Promise<Summary> {
  for (let head = csvLine(['line', 'path', 'outcome', 'code', 'message']); ; head = '') {
    const { done, value } = await steps.next()
    if (done) return value
    write(head)
    state.done += value.length
    const bad = value.filter(({ outcome }) => !isFine(outcome))
    state.problems.push(...bad.slice(0, PROBLEMS_MAX - state.problems.length))
    write(value.map(reportLine).join(''))
  }
}

const reportLine = ({ line, path, outcome, code, message }: ImportedRow): string =>
  csvLine([line, path, outcome, code, message])
