import { expect, test } from 'bun:test'
import { cutsOf, withPath } from './forwarded-path.ts'

const cuts = (path: string) => [...cutsOf(path)].map(({ address, rest }) => [address, rest])

test('a path is cut from its end, the longest address first', () => {
  expect(cuts('a/b/c')).toEqual([
    ['a/b', 'c'],
    ['a', 'b/c'],
  ])
  expect(cuts('a/b/')).toEqual([['a', 'b/']])
  expect(cuts('a')).toEqual([])
  expect(cuts('a/1/2/3/4/5/6/7/8/9').map(([address]) => address?.split('/').length)).toEqual([
    9, 8, 7, 6, 5, 4, 3, 2,
  ])
})

test.each([
  ['300 segments', 'segment/'.repeat(300), 0],
  ['8 KiB of slashes', '/'.repeat(8192), 0],
  ['slashes behind an address', `wiki${'/'.repeat(8000)}`, 0],
  ['an empty segment', 'wiki/a//b', 1],
  ['a dot segment', 'wiki/../a', 1],
  ['an encoded dot segment', 'wiki/%2e%2E/a', 1],
  ['one that is encoded four times', 'wiki/%252525252e', 0],
  ['a slash in a dot segment', 'wiki/..%2f..', 0],
  ['a malformed encoding', 'wiki/%zz', 0],
])('%s: addresses are looked up only behind what a destination can get', (_, path, count) => {
  expect(cuts(path)).toHaveLength(count)
})

test.each([
  ['https://d.example', 'a', 'https://d.example/a'],
  ['https://d.example/', 'a/b/', 'https://d.example/a/b/'],
  ['https://d.example/m?y=2', 'a', 'https://d.example/m/a?y=2'],
  ['https://d.example/m', 'a"b', 'https://d.example/m/a%22b'],
])('%s gets %s', (location, rest, expected) => {
  expect(withPath(location, rest)).toBe(expected)
})
