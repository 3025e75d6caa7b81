/** CSV as in RFC 4180. */

export const CSV_TYPE = 'text/csv; charset=utf-8'

/** First in a file for spreadsheets: without it, Excel reads UTF-8 as Windows-1252. */
export const BYTE_ORDER_MARK = '\ufeff'

/** The start of a formula in a spreadsheet, also in full width (OWASP, "CSV Injection"). */
const FORMULA = /^[=+\-@＝＋－＠\t\r\n]/

/** One line with CRLF. A cell that a spreadsheet would evaluate gets the prefix `'`. */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(value: string | number | null): string {
  if (typeof value === 'number') return String(value)
  const text = value ?? ''
  const safe = FORMULA.test(text) ? `'${text}` : text
  return /[",;\t\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
