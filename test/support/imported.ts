import { type ImportOptions, readImport } from '../../src/import/plan.ts'
import { type ImportedRow, runImport, type Summary } from '../../src/import/run.ts'
import type { SourceFile } from '../../src/import/source.ts'
import type { Stored } from '../../src/links/quota.ts'

export type Content = string | Uint8Array<ArrayBuffer>

export const fileOf = (content: Content, name = 'links'): SourceFile => ({
  name,
  blob: new Blob([content]),
  isTrusted: true,
})

/** The import of files into a service that creates each line, in this process. */
export async function imported(contents: readonly Content[], more: Partial<ImportOptions> = {}) {
  const lines: Record<string, unknown>[] = []
  const calls: number[] = []
  const send = async (sent: readonly string[]) => {
    calls.push(sent.length)
    lines.push(...sent.map((line) => JSON.parse(line) as Record<string, unknown>))
    const results = sent.map(() => ({ outcome: 'created' as const, code: null, message: '' }))
    return { results, stored: { links: sent.length, urlBytes: 0 } satisfies Stored }
  }
  const files = contents.map((content) => fileOf(content))
  const rows: ImportedRow[] = []
  const readings = readImport(files, { format: 'auto', as: 'lines', ...more })
  const steps = runImport(readings, { send })
  let step = await steps.next()
  for (; !step.done; step = await steps.next()) rows.push(...step.value)
  rows.sort((a, b) => a.line - b.line)
  const summary = step.value as Summary
  return { format: summary.format, lines, calls, rows, summary }
}

export const outcomesOf = (rows: readonly ImportedRow[]) => rows.map(({ outcome }) => outcome)

/** Files to import that have no row, and would take a parser much time or memory. */
export function hostileFiles(
  bytes: number,
): [name: string, content: string | Uint8Array<ArrayBuffer>][] {
  return [
    ['bytes 0xFF', new Uint8Array(bytes).fill(0xff)],
    ['cells without a line end', 'a;'.repeat(bytes / 2)],
    ['cells in lines', `${'a;'.repeat(1000)}\n`.repeat(bytes / 2001)],
    ['UTF-16 without a line end', Buffer.from(`\ufeff${'A'.repeat(bytes / 2)}`, 'utf16le')],
    ['quotes', `url\n"${'""'.repeat(bytes / 2)}`],
    ['quotes of SQL', `SET a='${"''".repeat(bytes / 2)}`],
    ['a row of SQL', `INSERT INTO a VALUES (${'1,'.repeat(bytes / 2)}`],
    ['lists of JSON', `[${'['.repeat(bytes)}`],
    ['numbers of JSON', `[${'1,'.repeat(bytes / 2)}`],
    ['a line of an export', `{"hopcode_export":1}\n${'x'.repeat(bytes)}`],
  ]
}
