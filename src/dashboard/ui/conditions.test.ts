import { expect, test } from 'bun:test'
import { typedCodes } from './conditions.ts'

/** What people type for languages and countries. */

const TYPED = [
  ['language', 'German, pt-BR', ['de', 'pt-BR']],
  ['language', 'french SPANISH;norwegian bokmål', ['fr', 'es', 'nb']],
  ['language', 'Hebrew', ['he']],
  ['language', 'klingon , ', ['klingon']],
  ['region', 'Germany, at', ['DE', 'at']],
  ['region', 'united kingdom; France CH, russia', ['GB', 'FR', 'CH', 'RU']],
  ['region', '', []],
] as const

test.each(TYPED)('names of a %s are codes: %s', (type, text, codes) => {
  expect(typedCodes(text, type)).toEqual([...codes])
})
