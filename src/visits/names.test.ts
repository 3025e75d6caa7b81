import { expect, test } from 'bun:test'
import { groupOf, nameOf } from './names.ts'

test.each(['constructor', '__proto__', 'toString'])(
  'a source named %s is shown as a text',
  (value) => {
    expect(nameOf('referrer', value)).toBe(value)
  },
)

test.each([
  ['referrer', 'direct', 'Direct, app or QR code'],
  ['referrer', 'google.de', 'Google'],
  ['referrer', 'blog.example', 'blog.example'],
  ['country', 'NO', 'Norway'],
  ['country', 'unknown', 'Unknown'],
  ['os', 'macos', 'macOS'],
  ['bot', 'slack', 'Slack (Link preview)'],
  ['bot', 'other', 'Other bots'],
] as const)('%s %s is shown as %s', (kind, value, name) => {
  expect(nameOf(kind, groupOf(kind, value))).toBe(name)
})
