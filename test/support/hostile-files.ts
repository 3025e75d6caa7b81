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
