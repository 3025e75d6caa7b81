import { expect, test } from 'bun:test'
import { cover, examine, parseSpec, readMarkers, rowsNamed } from '../scripts/spec-coverage.ts'

/** Every row of docs/spec.md has a test whose comment names it. */

test('every row of the contract has a test', async () => {
  expect((await examine()).problems).toEqual([])
})

const SPEC = `# Title

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
const rows = parseSpec(SPEC)
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

// With @ instead of //, because comments in this file would count too.
const TESTS = `
@ spec: above | 1
@ design: 4.1 codes
test('a title', () => {
  @ spec: inside | 2
  expect(1).toBe(1)
})

@ spec: above a table | 3
const table = [{ name: 'x' }]
test.each(table)('each $name', async () => {
  expect(1).toBe(1)
})

@ spec: one line | 4
test('it\\'s on one line', () => expect(1).toBe(1))
test.each([
  ['a', 1],
  @ spec: inside a table | 5
  ['b', 2],
])('rows %s', () => {})

test(
  'on a line of its own',
  () => {
    @ spec: long | 6
  },
  1000,
)
@ spec: after all | 7
`.replaceAll('@ ', '// ')

test('a comment belongs to the test around it, or else to the next one', () => {
  const markers = readMarkers('test/x.test.ts', TESTS)
  expect(markers.map(({ kind, text, title }) => [`${kind} ${text}`, title])).toEqual([
    ['spec above | 1', 'a title'],
    ['design 4.1 codes', 'a title'],
    ['spec inside | 2', 'a title'],
    ['spec above a table | 3', 'each $name'],
    ['spec one line | 4', "it's on one line"],
    ['spec inside a table | 5', 'rows %s'],
    ['spec long | 6', 'on a line of its own'],
    ['spec after all | 7', undefined],
  ])
})

test('a row without a test, an unknown row, several rows and a lost comment are problems', () => {
  const kept = needed.filter(({ chapter }) => chapter === 'Limits')
  const markers = ['Limits | Budget, Free', 'Limits | Budget', 'Nowhere | 1'].map((text, i) => ({
    kind: 'spec' as const,
    text,
    file: 'a.test.ts',
    line: i + 1,
    title: i === 0 ? undefined : 'a title',
  }))
  expect(cover(kept, markers).problems).toEqual([
    'a.test.ts:1: is above no test with a plain title',
    'a.test.ts:2: several rows are called "Limits | Budget"',
    'a.test.ts:3: no row is called "Nowhere | 1"',
    'no test for: Limits | Budget, Pro',
  ])
})

test('the page lists each row with its tests, and the number of rows without', () => {
  const markers = readMarkers(
    'test/e2e/x.test.ts',
    "@ spec: Limits | Budget, Pro\ntest('a | b', () => {})".replace('@', '//'),
  )
  const { page } = cover(
    rows.filter(({ chapter }) => chapter === 'Limits'),
    markers,
  )
  expect(page).toContain('1 of 2 rows have no test.')
  expect(page).toContain('| Budget (reads, writes), Free | **none** |')
  expect(page).toContain('| Budget, Pro | test/e2e/x.test.ts: a \\| b |')
})
