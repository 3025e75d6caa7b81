import { expect, test } from 'bun:test'
import { requireSameOrigin } from './csrf.ts'

const BASE_URL = 'https://hop.example'

const check = (origin: string) =>
  requireSameOrigin(new Request(`${BASE_URL}/app`, { headers: { origin } }), BASE_URL)

test('a form comes from an origin with the host of the service', () => {
  expect(() => check('https://hop.example')).not.toThrow()
  expect(() => check('https://evil.example')).toThrow()
  expect(() => check('null')).toThrow()
})

test('an origin that is longer than any host is not parsed', () => {
  expect(() => check(`https://${'a'.repeat(300)}@hop.example`)).toThrow()
})
