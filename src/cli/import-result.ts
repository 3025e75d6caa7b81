import { formatOf } from '../import/formats.ts'
import { isCreated, isFine, OUTCOME_WORDS, OUTCOMES, unreadText } from '../import/outcomes.ts'
import { countRows, type ImportedRow, PROBLEMS_MAX, type Summary } from '../import/run.ts'
import { visible } from '../lib/html.ts'

/** What the summary of an import does not have. */
interface About {
  isDryRun: boolean
  report: string | undefined
}

/** One object. `counts` has the outcomes that occurred, as the report names them. */
export function importJson(summary: Summary, { isDryRun, report }: About): string {
  const { format, rows, counts, hits, lost, unread } = summary
  return JSON.stringify({
    format,
    dry_run: isDryRun,
    rows,
    created: countRows(summary, isCreated),
    refused: rows - countRows(summary, isFine),
    counts,
    hits,
    not_supported: lost,
    columns_not_read: unread,
    report: report ?? null,
  })
}

/** Lines for a person: the outcomes in words, and the first rows that were refused. */
export function describeImport(
  { format, rows, counts, hits, lost, unread }: Summary,
  problems: readonly ImportedRow[],
  { isDryRun, report }: About,
): string {
  const { label, note } = formatOf(format)
  const number = (n: number) => n.toLocaleString('en')
  const outcomes = OUTCOMES.flatMap((outcome) => {
    const count = counts[outcome]
    return count ? `  ${number(count).padStart(11)}  ${OUTCOME_WORDS[outcome]}` : []
  })
  const created = OUTCOMES.filter(isCreated).some((outcome) => counts[outcome])
  const losses = Object.entries(lost).map(([name, n]) => `${number(n)} × ${name}`)
  return [
    `${label}: ${number(rows)} ${rows === 1 ? 'row' : 'rows'}${isDryRun ? ', as a dry run' : ''}`,
    ...outcomes,
    created && hits > 0 && `Hits without dates: ${number(hits)}. ${note ?? ''}`.trim(),
    losses.length > 0 && `Hopcode does not have: ${losses.join(', ')}.`,
    unread.length > 0 && visible(unreadText(unread)),
    ...problems.map(({ line, path, outcome, message }) => {
      return visible(`row ${line}  /${path}  ${message || OUTCOME_WORDS[outcome]}`)
    }),
    report === undefined && problems.length === PROBLEMS_MAX && '… --report FILE has all of them',
  ]
    .filter((text) => text !== false)
    .join('\n')
}
