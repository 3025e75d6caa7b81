import { expect, test } from 'bun:test'
import { HOUR, MINUTE } from '../lib/clock.ts'
import { type Command, parseCommand, parseUntil, UsageError } from './args.ts'

const parse = (line: string) => parseCommand(line.split(' ').filter((word) => word !== ''))

const disableSpring: Command = { name: 'link disable', code: 'spring26', reason: 'Phishing' }
const commands: [string, Command][] = [
  ['', { name: 'serve' }],
  ['serve', { name: 'serve' }],
  ['--help', { name: 'help' }],
  ['account create --help', { name: 'help' }],
  ['-v', { name: 'version' }],
  ['health', { name: 'health' }],
  [
    'account create --email a@example.com --plan pro',
    { name: 'account create', email: 'a@example.com', plan: 'pro', json: false },
  ],
  [
    'account create --plan=enterprise --json --email=a@example.com',
    { name: 'account create', email: 'a@example.com', plan: 'enterprise', json: true },
  ],
  ['account list --json', { name: 'account list', json: true }],
  [
    'account set-plan --email a@example.com --plan free',
    { name: 'account set-plan', email: 'a@example.com', plan: 'free' },
  ],
  [
    'account reset-password --email a@example.com',
    { name: 'account reset-password', email: 'a@example.com', json: false },
  ],
  ['account setup-link --json', { name: 'account setup-link', json: true }],
  [
    'key rotate --email a@example.com --now --json',
    { name: 'key rotate', email: 'a@example.com', now: true, json: true },
  ],
  ['key revoke --email a@example.com', { name: 'key revoke', email: 'a@example.com', now: false }],
  ['link disable spring26 --reason Phishing', disableSpring],
  ['link enable SPRING26', { name: 'link enable', code: 'SPRING26' }],
  ['link disabled --json', { name: 'link disabled', json: true }],
  [
    'account disable --email a@example.com --links',
    { name: 'account disable', email: 'a@example.com', links: true },
  ],
  [
    'account disable --email a@example.com',
    { name: 'account disable', email: 'a@example.com', links: false },
  ],
  ['account enable --email a@example.com', { name: 'account enable', email: 'a@example.com' }],
  ['maintenance on --until 30m', { name: 'maintenance on', until: '30m' }],
  ['maintenance off', { name: 'maintenance off' }],
  ['maintenance status', { name: 'maintenance status' }],
  ['backup /backups/today.hopcode', { name: 'backup', file: '/backups/today.hopcode' }],
  ['backup -', { name: 'backup', file: '-' }],
  ['restore today.hopcode', { name: 'restore', file: 'today.hopcode' }],
  ['check', { name: 'check', json: false }],
  ['check --json', { name: 'check', json: true }],
  [
    'shorten https://example.com/ --json',
    { name: 'shorten', url: 'https://example.com/', json: true },
  ],
  ['links', { name: 'links', text: '', json: false }],
  ['links flyer', { name: 'links', text: 'flyer', json: false }],
  ['qr spring26', { name: 'qr', code: 'spring26', out: '' }],
  ['qr spring26 --out -', { name: 'qr', code: 'spring26', out: '-' }],
]
test.each(commands)('hopcode %s', (line, command) => {
  expect(parse(line)).toEqual(command)
})

const senseless: [string, string][] = [
  ['frobnicate', 'unknown command: frobnicate'],
  ['account', 'unknown command: account. There are: account create, account list, '],
  ['account create extra --email a@example.com --plan pro', 'unknown command'],
  ['constructor', 'unknown command: constructor'],
  ['account create --plan pro', '--email is missing'],
  ['account create --email nobody --plan pro', '--email must be an e-mail address'],
  ['account create --email a@example.com', '--plan is missing'],
  [
    'account create --email a@example.com --plan gold',
    '--plan must be one of free, pro, enterprise, not gold',
  ],
  ['account create --email a@example.com --plan pro --now', 'account create accepts no --now'],
  ['serve --json', 'serve accepts no --json'],
  ['account list --verbose', "unknown option '--verbose'"],
  ['maintenance on', '--until is missing'],
  ['backup', 'backup needs a file, or - for a pipe'],
  ['restore one.hopcode two.hopcode', 'restore accepts one file, not also two.hopcode'],
  ['backup one.hopcode --json', 'backup accepts no --json'],
  ['link', 'unknown command: link. There are: link disable, link enable, link disabled'],
  ['link disable', 'link disable needs a code'],
  ['link disable SPRING26', '--reason is missing'],
  ['link disable SPRING26 SUMMER26 --reason x', 'link disable accepts one code, not also SUMMER26'],
  ['link disabled SPRING26', 'unknown command: link disabled SPRING26'],
  ['check one.hopcode', 'unknown command: check one.hopcode'],
]
test.each(senseless)('hopcode %s makes no sense', (line, message) => {
  expect(() => parse(line)).toThrow(UsageError)
  expect(() => parse(line)).toThrow(message)
})

const NOW = Date.UTC(2026, 2, 1, 12)

test.each([
  ['30m', NOW + 30 * MINUTE],
  ['2h', NOW + 2 * HOUR],
  ['1d', NOW + 24 * HOUR],
  ['2026-03-01T13:00:00Z', NOW + HOUR],
  ['2026-03-01T14:00:00.500+01:00', NOW + HOUR + 500],
  ['2026-03-02', NOW + 12 * HOUR],
])('--until %s', (text, expected) => {
  expect(parseUntil(text, NOW)).toBe(expected)
})

test.each(['', 'soon', '1', '30', 'May', '0m', '-5m', '5s', '2026-02-31T99:00Z', '2026-03-01'])(
  '--until %j is refused',
  (text) => {
    expect(() => parseUntil(text, NOW)).toThrow(UsageError)
  },
)
