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
