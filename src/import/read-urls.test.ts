import { expect, spyOn, test } from 'bun:test'
import { parse } from 'csv-parse/sync'
import * as fc from 'fast-check'
import { emptyLines, oneCharacterCsv, separatorsCsv } from '../../test/abuse/bodies.ts'
import { csvLine } from '../lib/csv.ts'
import { hasPathColumn, linesOf, readUrls } from './read-urls.ts'
import { SourceError } from './source.ts'

const fileOf = (content: string | Uint8Array<ArrayBuffer>) => new Blob([content])

const urlsOf = async (text: string | Uint8Array<ArrayBuffer>) => {
  const parsed = await readUrls(fileOf(text), 1000)
  return parsed.lines.map(({ line, text: url, problem }) =>
    problem ? [line, 'unclear'] : [line, url],
  )
}

test('a cell that a spreadsheet would run gets an apostrophe before it', () => {
  const ascii = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\nx']
  const fullWidth = ['＝1', '＋1', '－1', '＠A1']
  for (const cell of [...ascii, ...fullWidth]) {
    const [[read]] = parse(csvLine([cell])) as [[string]]
    expect(read).toBe(`'${cell}`)
  }
  expect(csvLine(['https://a.example/=1', 'A=1', '', null, 0, 12])).toBe(
    'https://a.example/=1,A=1,,,0,12\r\n',
  )
})

test('whatever is written is read back as it was, by a reader that is not ours', () => {
  const cell = fc
    .string({ unit: 'binary' })
    .filter((text) => !/^[=+\-@＝＋－＠\t\r\n\ufeff]/.test(text))
  fc.assert(
    fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 4 })), (rows) => {
      const text = rows.map(csvLine).join('')
      expect(parse(text, { relax_column_count: true, record_delimiter: '\r\n' })).toEqual(rows)
    }),
  )
})

test('lines are counted as an editor counts them, and empty ones are no URLs', () => {
  expect(linesOf('a\r\n\n  b  \rc\n', 9)).toEqual([
    { line: 1, text: 'a' },
    { line: 3, text: 'b' },
    { line: 4, text: 'c' },
  ])
})

const A = 'https://a.example/?x=1,2'
const files = [
  { name: 'a column named url', text: `name,URL\nx,"${A}"\n`, found: [[2, A]] },
  { name: 'a column named long_url', text: `long_url,x\n"${A}",y\n`, found: [[2, A]] },
  { name: 'a column named Long URL', text: `x,Long URL\ny,"${A}"\n`, found: [[2, A]] },
  { name: 'a column named destination', text: `x;destination\ny;${A}\n`, found: [[2, A]] },
  { name: 'other names: its first column', text: `link,x\n"${A}",y\n`, found: [[2, A]] },
  {
    name: 'no names: its first column',
    text: `"${A}","x"\n"${A}b","x"\n`,
    found: [
      [1, A],
      [2, `${A}b`],
    ],
  },
  {
    name: 'one column without a name',
    text: 'http://b.example\nhttp://c.example',
    found: [
      [1, 'http://b.example'],
      [2, 'http://c.example'],
    ],
  },
  { name: 'one column with a name, commas and no quotes', text: `url\n${A}\n`, found: [[2, A]] },
  {
    name: 'a mark of UTF-8 and line ends of Windows',
    text: `\ufeffurl\r\n\r\n"${A}"\r\n`,
    found: [[3, A]],
  },
  { name: 'tabs', text: `x\turl\ny\t${A}\n`, found: [[2, A]] },
  {
    name: 'quotes in a quoted cell',
    text: 'url\n"http://b.example/""q"""\n',
    found: [[2, 'http://b.example/"q"']],
  },
  { name: 'nothing', text: '', found: [] },
  { name: 'names alone', text: 'url\n', found: [] },
]
test.each(files)('a file with $name is read', async ({ text, found }) => {
  expect(await urlsOf(text)).toEqual(found as [number, string][])
})

const withPaths: [name: string, text: string, ignored: string[]][] = [
  ['url,path', `url,path\n"${A}",Spring-Sale\n"${A}", \n`, []],
  [
    'other columns',
    `Title;Custom Path;URL;Note\nx; Spring-Sale ;${A};y\nx;;${A};\n`,
    ['Title', 'Note'],
  ],
  ['alias and tabs', `alias\tlong_url\nSpring-Sale\t${A}\n\t${A}\n`, []],
]
test.each(withPaths)('a file with paths is read: %s', async (_, text, ignored) => {
  const read = await readUrls(fileOf(text), 1000)
  expect(read.ignored).toEqual(ignored)
  expect(read.lines.map(({ text: url, path }) => [url, path])).toEqual([
    [A, 'Spring-Sale'],
    [A, undefined],
  ])
})

test('a pasted text is one with paths if its first line names both columns', () => {
  const yes = ['url,path', 'URL;Custom Path\nx', '\n "url"\t"alias"\n', 'title,long_url,path']
  const no = ['', 'url', 'https://a.example/?x=1,path', 'path,title', A, `${A}\nurl,path`]
  expect(yes.filter((text) => !hasPathColumn(text))).toEqual([])
  expect(no.filter(hasPathColumn)).toEqual([])
})

test('a file in UTF-16 is read by its mark', async () => {
  const text = Buffer.from('\ufeffurl\r\nhttps://ü.example/', 'utf16le')
  expect(await urlsOf(text)).toEqual([[2, 'https://ü.example/']])
  expect(await urlsOf(text.swap16())).toEqual([[2, 'https://ü.example/']])
})

const latin1 = (text: string) => Buffer.from(text, 'latin1')

const encoded: [name: string, file: Uint8Array<ArrayBuffer> | string, url: string][] = [
  ['Windows-1252', latin1('url\nhttps://e.com/\xfc\x80\x92\x96\n'), 'https://e.com/ü€’–'],
  ['Windows-1252, in the host', latin1('url\nhttps://\xfc.example/\n'), 'https://ü.example/'],
  [
    'UTF-8 with one sign at its end',
    `url\n${'\n'.repeat(70_000)}https://e.com/ü\n`,
    'https://e.com/ü',
  ],
  ['UTF-8 with U+FFFD itself', 'url\nhttps://e.com/\ufffd\n', 'https://e.com/\ufffd'],
]
test.each(encoded)('a file in %s keeps its signs', async (_, content, url) => {
  expect((await urlsOf(content)).map(([, text]) => text)).toEqual([url])
})

const undecodable: [name: string, file: Uint8Array<ArrayBuffer>][] = [
  ['of UTF-8', Buffer.concat([Buffer.from('\ufeffurl\nhttps://e.com/'), latin1('\xfc\n')])],
  ['of UTF-16', Buffer.from('\ufeffurl\nhttps://e.com/\ud800x\n', 'utf16le')],
  ['of UTF-16, cut off', Buffer.from('\ufeffurl\nhttps://e.com/x', 'utf16le').subarray(0, -1)],
]
test.each(undecodable)('a file with the mark %s that is none is refused', async (_, content) => {
  await expect(readUrls(fileOf(content), 9)).rejects.toThrow(SourceError)
})

const separated: [first: string, sign: string][] = [
  ['sep=;', ';'],
  ['sep=,', ','],
  ['"sep=;"', ';'],
  ['sep=\t', '\t'],
  ['SEP=|', '|'],
  ['sep=;;', ';'],
]
test.each(separated)('the line %j names the separator, and is no row', async (first, sign) => {
  const row = (...cells: string[]) => `${cells.join(sign)}\r\n`
  const url = 'https://example.com/s2'
  for (const more of [[], ['A'], ['A', 'B']]) {
    const names = more.map((_, i) => `x${i}`)
    expect(await urlsOf(`${first}\r\n${row(...names, 'url')}${row(...more, url)}`)).toEqual([
      [3, url],
    ])
    expect(await urlsOf(`${first}\r\n${row('url', ...names)}${row(url, ...more)}`)).toEqual([
      [3, url],
    ])
  }
  expect(await urlsOf(`${first}\n${url}\n`)).toEqual([[2, url]])
})

const unclear = [
  { name: 'no names and a comma without quotes', text: `http://b.example\n${A}\n`, line: 2 },
  { name: 'more columns than names', text: `x,url\ny,${A}\n`, line: 2 },
]
test.each(unclear)(
  'a URL is never cut at a comma: with $name its line is refused whole',
  async ({ text, line }) => {
    const parsed = await readUrls(fileOf(text), 1000)
    const found = parsed.lines.find((one) => one.line === line)
    expect(found?.problem).toBeString()
    expect(found?.text).toContain(A)
  },
)

const broken = [
  { name: 'a quote that is never closed', text: 'url\n"http://b.example\n', says: 'not closed' },
  { name: 'an endless line', text: `url\n"${'x'.repeat(100_000)}"\n`, says: 'too long' },
]
test.each(broken)('a file with $name is refused with the reason', async ({ text, says }) => {
  const refusal = await readUrls(fileOf(text), 1000).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(SourceError)
  expect((refusal as Error).message).toContain(says)
})

const long = 8 * 1024 * 1024
const hostile = [
  { name: 'one letter a line', file: oneCharacterCsv(long), lines: 101 },
  { name: 'separators alone', file: `url\n${separatorsCsv(60_000)}\n`.repeat(100), lines: 101 },
]
test.each(hostile)('a file of $name is parsed up to the limit alone', async ({ file, lines }) => {
  using decoded = spyOn(TextDecoder.prototype, 'decode')
  expect((await readUrls(fileOf(file), 101)).lines).toHaveLength(lines)
  // The whole file is looked through for its encoding, by a decoder that keeps nothing.
  const bytes = decoded.mock.calls
    .filter((_, i) => !(decoded.mock.contexts[i] as TextDecoder).fatal)
    .reduce((sum, [part]) => sum + (part?.byteLength ?? 0), 0)
  expect(bytes).toBeLessThan(file.length)
  if (file.length === long) expect(bytes).toBeLessThan(256 * 1024)
})

test('pasted text is split up to the limit alone, and a line no longer than any URL is kept', () => {
  expect(linesOf('x\n'.repeat(1000), 101)).toHaveLength(101)
  expect(linesOf(emptyLines(long), 101)).toEqual([])
  expect(linesOf(`\n${'x'.repeat(long)}`, 101)).toEqual([{ line: 2, text: 'x'.repeat(8193) }])
})

test('a file of any length is parsed up to any number of lines', async () => {
  for (const lines of [1, 99, 100, 101, 150, 500, 5000, 50_000]) {
    for (const most of [1, 50, 101, 1001]) {
      const parsed = await readUrls(fileOf('http://a.example\n'.repeat(lines)), most)
      expect(parsed.lines).toHaveLength(Math.min(lines, most))
    }
  }
})
