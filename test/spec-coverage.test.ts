/**
 * Every row of docs/spec.md has a test with a comment that names it: `// spec: Chapter | row`.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')

interface SpecRow {
  chapter: string
  /** The first cell of a table's row, the number of a rule, a list item, or a sentence. */
  name: string
  isSentence: boolean
  /** False for sentences, except for those that list the responses of an endpoint. */
  needsTest: boolean
}

/** Tables whose rows are identified by their first two cells. */
const TWO_CELL_HEADS = ['From', 'Method', 'Status']

const ANSWER_LIST = /^(Response \d+|Errors?|Request-level errors)\b.*: /

function parseSpec(markdown: string): SpecRow[] {
  const rows: SpecRow[] = []
  const lines = markdown.split('\n')
  let chapter = ''
  let head: string[] | undefined
  let inRules = false
  const add = (name: string, of = chapter) =>
    rows.push({ chapter: of, name, isSentence: false, needsTest: true })
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
      add(rule, inRules ? `${withoutParentheses(chapter)} rules` : chapter)
    } else if (line.startsWith('- ')) {
      add(line.slice(2))
    } else if (line === 'Rules:') {
      inRules = true
    } else if (chapter !== '' && line.trim() !== '') {
      for (const field of inlineFields(line)) add(field)
      for (const name of line.split(/(?<=\.)\s+(?=[A-Z`\d])/)) {
        rows.push({ chapter, name, isSentence: true, needsTest: ANSWER_LIST.test(name) })
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

/**
 * The rows that a comment names: one, unless the comment is wrong. A name may end after any word;
 * for a sentence, some of its words in order are enough (`Errors 422`).
 */
function rowsNamed(rows: readonly SpecRow[], text: string): SpecRow[] {
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

/** Rows without a comment, and comments that do not name exactly one row. */
function problemsOf(rows: readonly SpecRow[], comments: readonly string[]): string[] {
  const missing = new Set(rows.filter(({ needsTest }) => needsTest))
  const problems: string[] = []
  for (const comment of comments) {
    const named = rowsNamed(rows, comment)
    if (named.length !== 1) problems.push(`${named.length} rows are called "${comment}"`)
    for (const row of named.slice(0, 1)) missing.delete(row)
  }
  for (const { chapter, name } of missing) problems.push(`no test for: ${chapter} | ${name}`)
  return problems
}

test('every row of the contract has a test, and every comment names a row', async () => {
  const comments: string[] = []
  for await (const file of new Bun.Glob('{test,src}/**/*.test.ts').scan(ROOT)) {
    const text = await Bun.file(join(ROOT, file)).text()
    for (const [, comment = ''] of text.matchAll(/^\s*\/\/ spec: (.+?)\s*$/gm)) {
      comments.push(comment)
    }
  }
  const rows = parseSpec(await Bun.file(join(ROOT, 'docs/spec.md')).text())
  expect(rows.length).toBeGreaterThan(0)
  expect(problemsOf(rows, comments)).toEqual([])
})

const EXAMPLE = `# Title

## What it does

- Codes are short. They last.

### Code (short link)

| Field | Type |
|---|---|
| code | string |
| url | string |

Rules:
1. A code is public.

| From | Trigger | To |
|---|---|---|
| (none) | POST /x | active |
| active | POST /x | active |

### POST /x

Request body: \`code\` (string), \`pin\` (string).

Response 200: \`code\`, \`done\` (true). It works at once.

Errors: 400 (no code), 409 (in use).

## Limits

| Limit | Value |
|---|---|
| Budget (reads, writes), Free | 60 |
| Budget, Pro | 600 |
`
const rows = parseSpec(EXAMPLE)
const needed = rows.filter(({ needsTest }) => needsTest)

test('rows are table rows, rules, list items and the answers of an endpoint', () => {
  expect(needed.map(({ chapter, name }) => `${chapter} | ${name}`)).toEqual([
    'What it does | Codes are short. They last.',
    'Code (short link) | code',
    'Code (short link) | url',
    'Code rules | 1',
    'Code (short link) | (none) POST /x',
    'Code (short link) | active POST /x',
    'POST /x | code',
    'POST /x | pin',
    'POST /x | Response 200: `code`, `done` (true).',
    'POST /x | Errors: 400 (no code), 409 (in use).',
    'Limits | Budget (reads, writes), Free',
    'Limits | Budget, Pro',
  ])
})

test.each([
  ['Code (short link) | url', 'url'],
  ['code | url', 'url'],
  ['Code rules | 1', '1'],
  ['Code (short link) | (none) POST /x', '(none) POST /x'],
  ['What it does | Codes are short', 'Codes are short. They last.'],
  ['Limits | Budget, Free', 'Budget (reads, writes), Free'],
  ['POST /x | Response 200', 'Response 200: `code`, `done` (true).'],
  ['POST /x | Errors 409', 'Errors: 400 (no code), 409 (in use).'],
  ['POST /x | It works', 'It works at once.'],
])('"%s" names one row', (text, name) => {
  expect(rowsNamed(rows, text).map((row) => row.name)).toEqual([name])
})

test.each([
  'Code (short link) | ur',
  'Code (short link)',
  'Limits | url',
  'POST /x | Errors 410',
  'POST /y | code',
  'url',
])('"%s" names no row', (text) => {
  expect(rowsNamed(rows, text)).toEqual([])
})

test('a row without a comment, an unknown row and several rows are problems', () => {
  const limits = needed.filter(({ chapter }) => chapter === 'Limits')
  const comments = ['Limits | Budget, Free', 'Limits | Budget', 'Nowhere | 1']
  expect(problemsOf(limits, comments)).toEqual([
    '2 rows are called "Limits | Budget"',
    '0 rows are called "Nowhere | 1"',
    'no test for: Limits | Budget, Pro',
  ])
})
