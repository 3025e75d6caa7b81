import { expect, test } from 'bun:test'
import { readOptions, UsageError } from './run-options.ts'

test('a run of everything is shorter than a run of what is named', () => {
  expect(readOptions([]).load).toMatchObject({ seconds: 2, rounds: 2, warmUp: 1, connections: 64 })
  expect(readOptions(['scan']).load).toMatchObject({ seconds: 3, rounds: 5 })
  expect(readOptions(['--seconds', '7', '--rounds', '1']).load).toMatchObject({
    seconds: 7,
    rounds: 1,
  })
})

test('compare takes two commits, then scenarios', () => {
  const { names, load } = readOptions(['compare', 'main~5', 'scan', '--rounds', '2'])
  expect(names).toEqual(['compare'])
  expect(load).toMatchObject({ refs: ['main~5', 'scan'], compared: [], rounds: 2 })
  expect(readOptions(['compare', 'a', 'b', 'create', 'list']).load).toMatchObject({
    refs: ['a', 'b'],
    compared: ['create', 'list'],
  })
  expect(readOptions(['scan', 'list'])).toMatchObject({
    names: ['scan', 'list'],
    load: { refs: [] },
  })
})

test('merge takes three result files or more, and may write the pages', () => {
  const files = ['a.json', 'b.json', 'c.json']
  expect(readOptions(['merge', ...files, '--readme'])).toMatchObject({ merge: files, readme: true })
  expect(readOptions(['scan']).merge).toEqual([])
})

test('redirects are left out unless they are asked for', () => {
  expect(readOptions(['soak']).load).not.toHaveProperty('redirects')
  expect(readOptions(['soak', '--redirects', '50']).load.redirects).toBe(50)
})

const refused = [
  ['compare'],
  ['compare', 'main'],
  ['merge', 'a.json', 'b.json'],
  ['--seconds', '0'],
  ['--rounds', '1.5'],
  ['--redirects', 'many'],
  ['--no-such'],
]

test.each(refused.map((args) => [args.join(' '), args] as const))('%s is refused', (_, args) => {
  expect(() => readOptions([...args])).toThrow(UsageError)
})
