const GAP = '  '
const ELLIPSIS = '…'
/** What the last column keeps on a narrow terminal. */
const LAST_MIN = 20

interface ColumnOptions {
  /** Numbers end below each other. */
  isNumber?: boolean
  /** Longer texts are cut. Default: none is. */
  max?: number
}

/**
 * Lines of text in columns, in cells of a terminal. The rows come in parts: a column is as wide as
 * its longest text so far, and one that was empty so far takes no room. The last column ends at
 * `width`.
 */
export class Columns {
  readonly #columns: readonly ColumnOptions[]
  readonly #width: number
  readonly #widths: number[]

  constructor(columns: readonly ColumnOptions[], width = Number.POSITIVE_INFINITY) {
    this.#columns = columns
    this.#width = width
    this.#widths = columns.map(() => 0)
  }

  /** The next rows, each with a text for each column. */
  lines(rows: readonly (readonly string[])[]): string[] {
    const fitted = rows.map((row) =>
      row.map((text, i) => fit(text, this.#columns[i]?.max ?? Number.POSITIVE_INFINITY)),
    )
    for (const row of fitted) {
      for (const [i, text] of row.entries()) {
        this.#widths[i] = Math.max(this.#widths[i] ?? 0, Bun.stringWidth(text))
      }
    }
    return fitted.map((row) => this.#line(row))
  }

  #line(row: readonly string[]): string {
    const last = row.length - 1
    const cells = row.slice(0, last).flatMap((text, i) => {
      const width = this.#widths[i] ?? 0
      const space = ' '.repeat(width - Bun.stringWidth(text))
      return width === 0 ? [] : [this.#columns[i]?.isNumber ? space + text : text + space]
    })
    const start = cells.map((cell) => cell + GAP).join('')
    const room = Math.max(LAST_MIN, this.#width - Bun.stringWidth(start))
    return (start + fit(row[last] ?? '', room)).trimEnd()
  }
}

const graphemes = new Intl.Segmenter()

/** The text in at most `max` cells, of which Chinese, Japanese and Korean signs take two. */
function fit(text: string, max: number): string {
  if (Bun.stringWidth(text) <= max) return text
  let [kept, width] = ['', ELLIPSIS.length]
  for (const { segment } of graphemes.segment(text)) {
    width += Bun.stringWidth(segment)
    if (width > max) break
    kept += segment
  }
  return kept + ELLIPSIS
}
