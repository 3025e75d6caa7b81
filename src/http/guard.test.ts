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
