import {
  type ImportedRow,
  type ImportOptions,
  run,
  type Summary,
  scan,
} from '../../src/import/plan.ts'
import type { SourceFile } from '../../src/import/source.ts'
import type { Stored } from '../../src/links/quota.ts'

export type Content = string | Uint8Array<ArrayBuffer>

export const fileOf = (content: Content, name = 'links'): SourceFile => ({
  name,
  blob: new Blob([content]),
  isTrusted: true,
})

/** The import of files into a service that creates each line. */
export async function imported(contents: readonly Content[], more: Partial<ImportOptions> = {}) {
  const options: ImportOptions = { format: 'auto', ...more }
  const lines: Record<string, unknown>[] = []
  const send = async (sent: readonly string[]) => {
    lines.push(...sent.map((line) => JSON.parse(line) as Record<string, unknown>))
    const results = sent.map(() => ({ outcome: 'created' as const, code: null, message: '' }))
    return { results, stored: { links: sent.length, urlBytes: 0 } satisfies Stored }
  }
  const found = await scan(
    contents.map((content) => fileOf(content)),
    options,
  )
  const rows: ImportedRow[] = []
  const steps = run(found, options, send)
  let step = await steps.next()
  for (; !step.done; step = await steps.next()) rows.push(...step.value)
  rows.sort((a, b) => a.line - b.line)
  return { format: found.format, lines, rows, summary: step.value as Summary }
}

export const outcomesOf = (rows: readonly ImportedRow[]) => rows.map(({ outcome }) => outcome)
