import { expect, test } from 'bun:test'
import { Columns } from './columns.ts'

test('each text begins below the one before, and each number ends there', () => {
  const columns = new Columns([{}, { isNumber: true }, {}])
  expect(
    columns.lines([
      ['a', '5', 'https://example.com/'],
      ['bcd', '1,000', ''],
      ['夏の', '20', 'x'],
    ]),
  ).toEqual(['a         5  https://example.com/', 'bcd   1,000', '夏の     20  x'])
})

test('a column without a text takes no room until it has one', () => {
  const columns = new Columns([{}, {}, {}])
  expect(columns.lines([['a', '', 'x']])).toEqual(['a  x'])
  expect(columns.lines([['b', 'title', 'y']])).toEqual(['b  title  y'])
  expect(columns.lines([['c', '', 'z']])).toEqual(['c         z'])
})

test('a long text ends with an ellipsis, at the edge of the terminal or at the most of its column', () => {
  const columns = new Columns([{ max: 6 }, {}], 30)
  const [latin, wide] = columns.lines([
    ['Summer sale', 'https://example.com/a/very/long/path'],
    ['夏のセール', 'short'],
  ])
  expect(latin).toBe('Summe…  https://example.com/a…')
  expect(wide).toBe('夏の…   short')
})

test('a family of emoji is cut as a whole', () => {
  expect(new Columns([{ max: 4 }, {}]).lines([['👨‍👩‍👧ab👨‍👩‍👧', '']])).toEqual(['👨‍👩‍👧a…'])
})
