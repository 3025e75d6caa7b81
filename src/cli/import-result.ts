import { formatOf } from '../import/formats.ts'
import { isCreated, isFine, OUTCOMES, type Outcome } from '../import/outcomes.ts'
import { countRows, type ImportedRow, PROBLEMS_MAX, type Summary } from '../import/run.ts'
import { visible } from '../lib/html.ts'

/** What the result of an import says of each outcome. The report and JSON have the identifiers. */
const IN_WORDS: Readonly<Record<Outcome, string>> = {
  created: 'created',
  created_alias: 'created, with the path as an alias',
  created_paused: 'created, paused',
  exists: 'existed already',
  kept: 'existed with another destination, not changed',
  left_out: 'left out on request',
  other_domain: 'left out, of another domain',
  repeated: 'left out, repeats an earlier row',
  path_taken: 'refused: the path is in use',
  reserved_path: 'refused: the path belongs to the service itself',
  invalid_path: 'refused: the path is not possible',
  invalid_url: 'refused: the destination is not possible',
  blocked: 'refused: the destination is blocked',
  quota: 'refused: over the quota of the plan',
  not_allowed: 'refused: only owners of the service can add aliases',
  bad_row: 'refused: the row cannot be read',
}

/** What the summary of an import does not have. */
interface About {
  isDryRun: boolean
  report: string | undefined
}

/** One object. `counts` has the outcomes that occurred, as the report names them. */
export function importJson(summary: Summary, { isDryRun, report }: About): string {
  const { format, rows, counts, hits, lost } = summary
  return JSON.stringify({
    format,
    dry_run: isDryRun,
    rows,
    created: countRows(summary, isCreated),
    refused: rows - countRows(summary, isFine),
    counts,
    hits,
    not_supported: lost,
    report: report ?? null,
  })
}

/** Lines for a person: the outcomes in words, and the first rows that were refused. */
export function describeImport(
  { format, rows, counts, hits, lost }: Summary,
  problems: readonly ImportedRow[],
  { isDryRun, report }: About,
): string {
  const { label, note } = formatOf(format)
  const number = (n: number) => n.toLocaleString('en')
  const outcomes = OUTCOMES.flatMap((outcome) => {
    const count = counts[outcome]
    return count ? `  ${number(count).padStart(11)}  ${IN_WORDS[outcome]}` : []
  })
  const created = OUTCOMES.filter(isCreated).some((outcome) => counts[outcome])
  const losses = Object.entries(lost).map(([name, n]) => `${number(n)} × ${name}`)
  return [
    `${label}: ${number(rows)} ${rows === 1 ? 'row' : 'rows'}${isDryRun ? ', as a dry run' : ''}`,
    ...outcomes,
    created && hits > 0 && `Hits without dates: ${number(hits)}. ${note ?? ''}`.trim(),
    losses.length > 0 && `Hopcode does not have: ${losses.join(', ')}.`,
    ...problems.map(({ line, path, outcome, message }) => {
      return visible(`row ${line}  /${path}  ${message || IN_WORDS[outcome]}`)
    }),
    report === undefined && problems.length === PROBLEMS_MAX && '… --report FILE has all of them',
  ]
    .filter((text) => text !== false)
    .join('\n')
}
