import { expect, test } from 'bun:test'
import { icon } from './icons.ts'

test('an icon is markup that is inserted unchanged and hidden from screen readers', () => {
  expect(icon('x').toString()).toBe(
    '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">' +
      '<path d="M18 6 6 18"/><path d="m6 6 12 12"/></svg>',
  )
})
