/**
 * Prints the tests of every row of docs/spec.md, from the comments `// spec: Chapter | row` in the
 * tests: bun scripts/spec-coverage.ts. Exits with 1 if a row has no test, or a comment no row.
 */

import { join, relative } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const SPEC = 'docs/spec.md'

export interface SpecRow {
  chapter: string
  /** The first cell of a table's row, the number of a rule, a list item, or a sentence. */
  name: string
  /** The text on the page. */
  text: string
  isSentence: boolean
  /** False for sentences, except for those that list the responses of an endpoint. */
  needsTest: boolean
}

export interface Marker {
  kind: 'spec' | 'design'
  /** The text after the kind. */
  text: string
  /** From the repository's root. */
  file: string
  line: number
  /** The title of the test around it, else of the next one; undefined if there is none. */
  title: string | undefined
}

/** Tables whose rows are identified by their first two cells. */
const TWO_CELL_HEADS = ['From', 'Method', 'Status']

const ANSWER_LIST = /^(Response \d+|Errors?|Request-level errors)\b.*: /

export function parseSpec(markdown: string): SpecRow[] {
  const rows: SpecRow[] = []
  const lines = markdown.split('\n')
  let chapter = ''
  let head: string[] | undefined
  let inRules = false
  const add = (name: string, text = name, of = chapter) =>
    rows.push({ chapter: of, name, text, isSentence: false, needsTest: true })
  for (const [index, line] of lines.entries()) {
    const heading = /^#{1,4} (.+)$/.exec(line)?.[1]
    const rule = /^(\d+)\. /.exec(line)?.[1]
    if (heading !== undefined) {
      chapter = heading
      inRules = false
    } else if (line.startsWith('|')) {
      const cells = cellsOf(line)
      if (lines[index + 1]?.startsWith('|---')) head = cells
      else if (!line.startsWith('|---')) add(nameOf(cells, head))
    } else if (rule !== undefined) {
      add(rule, line, inRules ? `${withoutParentheses(chapter)} rules` : chapter)
    } else if (line.startsWith('- ')) {
      add(line.slice(2))
    } else if (line === 'Rules:') {
      inRules = true
    } else if (chapter !== '' && line.trim() !== '') {
      for (const field of inlineFields(line)) add(field)
      for (const name of line.split(/(?<=\.)\s+(?=[A-Z`\d])/)) {
        rows.push({
          chapter,
          name,
          text: name,
          isSentence: true,
          needsTest: ANSWER_LIST.test(name),
        })
      }
    }
  }
  return rows
}

function nameOf(cells: readonly string[], head: readonly string[] = []): string {
  return cells.slice(0, TWO_CELL_HEADS.includes(head[0] ?? '') ? 2 : 1).join(' ')
}

const cellsOf = (line: string) =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())

/** The fields of a request body that is described in a sentence instead of a table. */
function inlineFields(line: string): string[] {
  if (!line.startsWith('Request body: ')) return []
  return [...line.matchAll(/`(\w+)` \(/g)].map(([, field = '']) => field)
}

export function readMarkers(file: string, source: string): Marker[] {
  const lines = source.split('\n')
  const tests = findTests(lines)
  return lines.flatMap((line, index) => {
    const [, kind, text = ''] = /^\s*\/\/ (spec|design): (.+?)\s*$/.exec(line) ?? []
    if (kind === undefined) return []
    const around = tests.find(({ start, end }) => start <= index && index <= end)
    const { title } = around ?? tests.find(({ start }) => start > index) ?? {}
    return [{ kind: kind as Marker['kind'], text, file, line: index + 1, title }]
  })
}

interface FoundTest {
  start: number
  end: number
  title: string | undefined
}

/** Relies on the formatter: a call ends at the line with its own indentation. */
function findTests(lines: readonly string[]): FoundTest[] {
  const tests: FoundTest[] = []
  for (const [start, line] of lines.entries()) {
    const call = /^(\s*)(test\w*|it)((?:\.\w+)*)\(/.exec(line)
    if (!call) continue
    const [, indent = '', name = '', modifiers = ''] = call
    const closes = new RegExp(`^${indent}[)\\]}]+$`)
    const staysInside = new RegExp(`^(${indent}(\\s|[)\\]}])|$)`)
    let end = start
    while (end + 1 < lines.length && staysInside.test(lines[end + 1] ?? '')) {
      end++
      if (closes.test(lines[end] ?? '')) break
    }
    const text = lines.slice(start, end + 1).join('\n')
    const isCurried = name === 'testWith' || /\.(each|if|skipIf)$/.test(modifiers)
    tests.push({ start, end, title: titleOf(text, isCurried) })
  }
  return tests
}

function titleOf(call: string, isCurried: boolean): string | undefined {
  const open = isCurried ? '\\)\\(' : '^[^(]*\\('
  const literal = `\\s*(['"\`])((?:\\\\.|(?!\\1)[^\\\\])*)\\1`
  return new RegExp(open + literal).exec(call)?.[2]?.replaceAll(/\\(.)/g, '$1')
}

/**
 * The rows that a comment names: one, unless the comment is wrong. A name may end after any word;
 * for a sentence, some of its words in order are enough (`Errors 422`).
 */
export function rowsNamed(rows: readonly SpecRow[], text: string): SpecRow[] {
  const [chapter = '', ...rest] = text.split(' | ')
  const name = plain(rest.join(' | '))
  const inChapter = rows.filter((row) => name !== '' && plain(row.chapter) === plain(chapter))
  const exact = inChapter.filter((row) => plain(row.name) === name)
  if (exact.length > 0) return exact
  const longer = inChapter.filter((row) => startsWithWords(plain(row.name), name))
  if (longer.length > 0) return longer
  return inChapter.filter((row) => row.isSentence && hasWords(row.name, name)).slice(0, 1)
}

const startsWithWords = (text: string, start: string) =>
  text.startsWith(start) && !/^\w/.test(text.slice(start.length))

function hasWords(text: string, words: string): boolean {
  const wanted = wordsOf(words)
  for (const word of wordsOf(text)) if (word === wanted[0]) wanted.shift()
  return wanted.length === 0
}

const wordsOf = (text: string) => plain(text).match(/[\w-]+/g) ?? []

const withoutParentheses = (text: string) => text.replaceAll(/\s*\([^)]*\)/g, '').trim()

const plain = (text: string) =>
  withoutParentheses(text.replaceAll('`', '')).replaceAll(/\s+/g, ' ').toLowerCase()

interface Coverage {
  page: string
  /** One line per problem. */
  problems: string[]
}

export function cover(rows: readonly SpecRow[], markers: readonly Marker[]): Coverage {
  const problems: string[] = []
  const tests = new Map<SpecRow, Marker[]>(rows.map((row) => [row, []]))
  for (const marker of markers) {
    const at = `${marker.file}:${marker.line}`
    if (marker.title === undefined) problems.push(`${at}: is above no test with a plain title`)
    if (marker.kind === 'design') continue
    const named = rowsNamed(rows, marker.text)
    const [row] = named
    if (!row) problems.push(`${at}: no row is called "${marker.text}"`)
    else if (named.length > 1) problems.push(`${at}: several rows are called "${marker.text}"`)
    else tests.get(row)?.push(marker)
  }
  for (const [row, found] of tests) {
    if (row.needsTest && found.length === 0) {
      problems.push(`no test for: ${row.chapter} | ${row.name}`)
    }
  }
  return { page: pageOf(tests, markers), problems }
}

function pageOf(tests: ReadonlyMap<SpecRow, Marker[]>, markers: readonly Marker[]): string {
  const shown = [...tests].filter(([row, found]) => row.needsTest || found.length > 0)
  const chapters = Map.groupBy(shown, ([row]) => row.chapter)
  const required = shown.filter(([row]) => row.needsTest)
  const missing = required.filter(([, found]) => found.length === 0).length
  const decisions = Map.groupBy(
    markers.filter(({ kind }) => kind === 'design'),
    ({ text }) => text,
  )
  return [
    '# Tests of the contract',
    '',
    missing === 0
      ? `All ${required.length} rows have a test.`
      : `${missing} of ${required.length} rows have no test.`,
    ...[...chapters].flatMap(([chapter, entries]) => section(chapter, entries)),
    ...section(
      'Decisions beyond the contract',
      [...decisions]
        .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
        .map(([text, found]) => [{ text: text.replace(/^[\d.]+ /, '') }, found]),
    ),
    '',
  ].join('\n')
}

function section(
  heading: string,
  entries: readonly (readonly [{ text: string }, readonly Marker[]])[],
): string[] {
  if (entries.length === 0) return []
  const lines = entries.map(([{ text }, found]) => `| ${cell(text)} | ${testsCell(found)} |`)
  return ['', `## ${heading}`, '', '| Row | Tests |', '|---|---|', ...lines]
}

function testsCell(found: readonly Marker[]): string {
  const byFile = Map.groupBy(found, ({ file }) => file)
  const files = [...byFile].map(([file, markers]) => {
    const titles = new Set(markers.map(({ title = '' }) => cell(title)))
    return `${file}: ${[...titles].join(' · ')}`
  })
  return files.length === 0 ? '**none**' : files.join('<br>')
}

/** `<` starts a tag, except in code. */
const cell = (text: string) =>
  text
    .replaceAll('|', '\\|')
    .replaceAll(/`[^`]*`|</g, (found) => (found === '<' ? '&lt;' : found))
    .replaceAll(/\s+/g, ' ')

/** The problems of the tests under `root`, and the page. */
export async function examine(root = ROOT): Promise<Coverage> {
  const rows = parseSpec(await Bun.file(join(root, SPEC)).text())
  const files = await Array.fromAsync(
    new Bun.Glob('{test,src}/**/*.test.ts').scan({ cwd: root, absolute: true }),
  )
  const markers: Marker[] = []
  for (const file of files.sort()) {
    markers.push(...readMarkers(relative(root, file), await Bun.file(file).text()))
  }
  return cover(rows, markers)
}

if (import.meta.main) {
  const { page, problems } = await examine()
  console.log(page)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
