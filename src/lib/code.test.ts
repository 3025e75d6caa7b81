import { expect, test } from 'bun:test'
import { newCode, toCode } from './code.ts'
import { secureRandom } from './random.ts'

// spec: What the service does | Codes are always uppercase
test('lowercase input for a code is uppercased', () => {
  expect(String(toCode('spring26'))).toBe('SPRING26')
})

// spec: Code (short link) | code
test.each(['ABCDEF', 'A'.repeat(20), '123456', 'a1B2c3'])('%s can be a code', (text) => {
  expect(String(toCode(text))).toBe(text.toUpperCase())
})

const not = ['', 'ABCDE', 'A'.repeat(21), 'MY-CODE', 'MY CODE', 'MY_CODE', 'ABCDEF\n', ' ABCDEF']
const lookalikes = ['straße', 'ABCDEı', 'АBCDEF', 'ＡＢＣＤＥＦ', 'ABCDE١', 'ﬁabcd']
// spec: Errors | 400 custom code
test.each([...not, ...lookalikes])('%j cannot be a code', (text) => {
  expect(toCode(text)).toBeUndefined()
})

// design: 4.1 generated codes
test('a generated code is 8 characters without the look-alikes I, O, 0 and 1', () => {
  for (let i = 0; i < 2000; i++) expect(newCode(secureRandom)).toMatch(/^[A-HJ-NP-Z2-9]{8}$/)
})
