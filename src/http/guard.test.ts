import { expect, test } from 'bun:test'
import { methodsOf } from './guard.ts'

const routes = [
  { method: 'POST', path: '/api/shorten' },
  { method: 'GET', path: '/api/lookup/:code' },
  { method: 'GET', path: '/:code' },
  { method: 'GET', path: '/' },
]

test.each([
  ['/api/shorten', ['POST']],
  ['/api/shorten/', ['POST']],
  ['/api/lookup/ABCDEF', ['GET', 'HEAD']],
  ['/api/lookup/', []],
  ['/ABCDEF', ['GET', 'HEAD']],
  ['/', ['GET', 'HEAD']],
  ['/a/b', []],
  ['/api/shorten/x', []],
])('%s answers %j', (path, methods) => {
  expect(methodsOf(routes, path)).toEqual(methods)
})

// Split once for each route, it would take minutes.
test('a path of many segments is split once', () => {
  const many = Array.from({ length: 1000 }, (_, n) => ({ method: 'GET', path: `/route/${n}` }))
  for (let n = 0; n < 300; n++) expect(methodsOf(many, '/'.repeat(15_000))).toEqual([])
})
