import { expect, test } from 'bun:test'
import { findPasswordProblem } from './credentials.ts'

test.each([
  ['1234567', 'at least 8'],
  ['水'.repeat(7), 'at least 8'],
  ['x'.repeat(129), 'at most 128'],
  ['password', 'most common'],
  ['12345678', 'most common'],
  ['IloveYou', 'most common'],
  ['trustno1', 'most common'],
])('%j is refused: %s', (password, says) => {
  expect(findPasswordProblem(password)).toContain(says)
})

test.each(['seven purple otters', '水火'.repeat(4), '🦆🐝'.repeat(64), 'x9'.repeat(64)])(
  '%j is good enough',
  (password) => expect(findPasswordProblem(password)).toBeUndefined(),
)

const EMAIL = 'Ann.Miller@example.com'

test.each([
  ['the address', 'ann.miller@example.com', 'e-mail address'],
  ['the address in capitals', 'ANN.MILLER@EXAMPLE.COM', 'e-mail address'],
  ['the address and digits', 'ann.miller@example.com1', 'e-mail address'],
  ['its local part', 'ann.miller', 'e-mail address'],
  ['its local part and a year', 'Ann.Miller2026!', 'e-mail address'],
  ['digits and its local part', '123ann.miller', 'e-mail address'],
  ['its domain', 'example.com', 'e-mail address'],
  ['a word of its domain, twice', 'exampleexample', 'e-mail address'],
  ['words of its local part and its domain', 'annexample1', 'e-mail address'],
  ['the service’s name and a digit', 'hopcode1', 'Hopcode'],
  ['the service’s name and digits', 'HopCode123', 'Hopcode'],
  ['the service’s name and signs', '!!hopcode!!', 'Hopcode'],
  ['the service’s name twice', 'hopcodehopcode', 'Hopcode'],
  ['one letter', 'aaaaaaaa', 'repeats one character'],
  ['one letter in two cases', 'aAaAaAaAaA', 'repeats one character'],
  ['one emoji', '🦆'.repeat(8), 'repeats one character'],
  ['spaces', ' '.repeat(8), 'cannot be seen'],
  ['zero-width spaces', '\u200b'.repeat(8), 'cannot be seen'],
  ['all kinds of blanks', ' \u00a0\u2003\u3000\ufeff\u3164\u2800\u00ad\u200d\t', 'cannot be seen'],
  ['a season and a year', 'Summer2025', 'a season or a month'],
  ['a season, a sign and a short year', 'winter-24!', 'a season or a month'],
  ['a month and a year', 'September2026', 'a season or a month'],
  ['a short month and a year', 'Sept. 2026', 'a season or a month'],
  ['a year and a season', '2025spring', 'a season or a month'],
])('%s is no password', (_, password, says) => {
  expect(findPasswordProblem(password, EMAIL)).toContain(says)
})

test.each([
  'seven purple otters',
  'ann.miller likes seven otters',
  'hopcode has seven otters',
  'summer of the otters 2025',
  'miller-and-the-otters',
  '        a lot of space        ',
  'x9$kQ2vL',
  'aaaaaaab',
  `${'水'.repeat(7)}木`,
])('%p is one, though it has a part of what is refused', (password) => {
  expect(findPasswordProblem(password, EMAIL)).toBeUndefined()
})

test('without an address, and with a local part as short as a letter, nothing more is refused', () => {
  expect(findPasswordProblem('seven purple otters', '')).toBeUndefined()
  expect(findPasswordProblem('a1234!67', 'a@b.example')).toBeUndefined()
})
