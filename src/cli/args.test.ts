import { expect, test } from 'bun:test'
import { HOUR, MINUTE } from '../lib/clock.ts'
import { parseCommand, parseUntil, UsageError } from './args.ts'
import type { Command } from './commands.ts'

const parse = (line: string) => parseCommand(line.split(' ').filter((word) => word !== ''))

const disableSpring: Command = { command: 'link disable', code: 'spring26', reason: 'Phishing' }
const commands: [string, Command][] = [
  ['', { command: 'serve' }],
  ['serve', { command: 'serve' }],
  ['--help', { command: 'help', topic: '' }],
  ['account create --help', { command: 'help', topic: 'account create' }],
  ['account -h', { command: 'help', topic: 'account' }],
  ['help', { command: 'help', topic: '' }],
  ['help settings', { command: 'help', topic: 'settings' }],
  ['help link disable', { command: 'help', topic: 'link disable' }],
  ['version', { command: 'version' }],
  ['-v', { command: 'version' }],
  ['health', { command: 'health' }],
  [
    'account create --email a@example.com --plan pro',
    { command: 'account create', email: 'a@example.com', plan: 'pro', json: false },
  ],
  [
    'account create --plan=enterprise --json --email=a@example.com',
    { command: 'account create', email: 'a@example.com', plan: 'enterprise', json: true },
  ],
  ['account list --json', { command: 'account list', json: true }],
  [
    'account set-plan --email a@example.com --plan free',
    { command: 'account set-plan', email: 'a@example.com', plan: 'free' },
  ],
  [
    'account reset-password --email a@example.com',
    { command: 'account reset-password', email: 'a@example.com', json: false },
  ],
  ['account setup-link --json', { command: 'account setup-link', another: false, json: true }],
  [
    'key rotate --email a@example.com --now --json',
    { command: 'key rotate', email: 'a@example.com', name: '', now: true, json: true },
  ],
  [
    'key revoke --email a@example.com --name Website',
    { command: 'key revoke', email: 'a@example.com', name: 'Website', now: false },
  ],
  ['link disable spring26 --reason Phishing', disableSpring],
  ['link enable SPRING26', { command: 'link enable', code: 'SPRING26' }],
  ['link disabled --json', { command: 'link disabled', json: true }],
  [
    'account disable --email a@example.com --links',
    { command: 'account disable', email: 'a@example.com', links: true },
  ],
  [
    'account disable --email a@example.com',
    { command: 'account disable', email: 'a@example.com', links: false },
  ],
  ['account enable --email a@example.com', { command: 'account enable', email: 'a@example.com' }],
  ['maintenance on --until 30m', { command: 'maintenance on', until: '30m' }],
  ['maintenance off', { command: 'maintenance off' }],
  ['maintenance status', { command: 'maintenance status' }],
  [
    'backup /backups/today.hopcode',
    { command: 'backup', file: '/backups/today.hopcode', 'for-join': false },
  ],
  ['backup --for-join -', { command: 'backup', file: '-', 'for-join': true }],
  ['cluster init', { command: 'cluster init' }],
  ['cluster join', { command: 'cluster join', source: '' }],
  ['cluster join -', { command: 'cluster join', source: '-' }],
  ['cluster status --json', { command: 'cluster status', json: true }],
  ['cluster leave', { command: 'cluster leave', host: '', force: false }],
  ['cluster leave --host host-b', { command: 'cluster leave', host: 'host-b', force: false }],
  ['restore today.hopcode', { command: 'restore', file: 'today.hopcode' }],
  ['check', { command: 'check', json: false }],
  ['check --json', { command: 'check', json: true }],
  [
    'shorten https://example.com/ --json',
    { command: 'shorten', url: 'https://example.com/', json: true },
  ],
  ['links', { command: 'links', text: '', json: false }],
  ['links flyer', { command: 'links', text: 'flyer', json: false }],
  ['qr spring26', { command: 'qr', code: 'spring26', out: '' }],
  ['qr spring26 --out -', { command: 'qr', code: 'spring26', out: '-' }],
]
test.each(commands)('hopcode %s', (line, command) => {
  expect(parse(line)).toEqual(command)
})

const senseless: [string, string][] = [
  ['frobnicate', 'unknown command: frobnicate'],
  ['account', 'account needs a subcommand: account create, account list, '],
  ['acount list', 'unknown command: acount list. Did you mean account list?'],
  ['acount', 'unknown command: acount. Did you mean account?'],
  ['account crate', 'unknown command: account crate. Did you mean account create?'],
  ['account frobnicate', 'unknown command: account frobnicate. There are: account create, '],
  ['bakcup today.hopcode', 'Did you mean backup?'],
  ['help acount', 'Did you mean account?'],
  ['help frobnicate', 'unknown command: frobnicate'],
  [
    'account create extra --email a@example.com --plan pro',
    'account create accepts no argument, got extra',
  ],
  ['constructor', 'unknown command: constructor'],
  ['account create --plan pro', '--email is missing'],
  ['account create --email nobody --plan pro', '--email must be an e-mail address (got nobody)'],
  ['account create --email a@example.com', '--plan is missing'],
  [
    'account create --email a@example.com --plan gold',
    '--plan must be one of free, pro, enterprise (got gold)',
  ],
  ['account create --email a@example.com --plan pro --now', 'account create accepts no --now'],
  ['serve --json', 'serve accepts no --json'],
  ['account list --verbose', "unknown option '--verbose'"],
  ['account create --mail a@example.com', "unknown option '--mail'. Did you mean --email?"],
  ['account create --email --plan pro', '--email needs a value'],
  ['account create --plan pro --email', '--email needs a value'],
  ['account create --email=', '--email needs a value'],
  ['account list --json=yes', '--json accepts no value, got yes'],
  ['maintenance on', '--until is missing'],
  ['backup', 'backup needs a file, or - for a pipe'],
  ['restore one.hopcode two.hopcode', 'restore accepts one file, not also two.hopcode'],
  ['backup one.hopcode --json', 'backup accepts no --json'],
  ['link', 'link needs a subcommand: link disable, link enable, link disabled'],
  ['link disable', 'link disable needs a code'],
  ['link disable SPRING26', '--reason is missing'],
  ['link disable SPRING26 SUMMER26 --reason x', 'link disable accepts one code, not also SUMMER26'],
  ['link disabled SPRING26', 'link disabled accepts no argument, got SPRING26'],
  ['check one.hopcode', 'check accepts no argument, got one.hopcode'],
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
