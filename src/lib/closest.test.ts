import { expect, test } from 'bun:test'
import { findClosest } from './closest.ts'

const WORDS = ['account', 'backup', 'account create', 'account list', 'qr', 'email', 'plan']

test.each([
  ['acount', 'account'],
  ['accuont', 'account'],
  ['bakcup', 'backup'],
  ['acount create', 'account create'],
  ['account lst', 'account list'],
  ['q', 'qr'],
  ['mail', 'email'],
  ['frobnicate', undefined],
  ['', undefined],
  ['x'.repeat(1_000_000), undefined],
])('%s stands for %s', (word, expected) => {
  expect(findClosest(word, WORDS)).toBe(expected)
})

test('without candidates there is no suggestion', () => {
  expect(findClosest('account', [])).toBeUndefined()
})
