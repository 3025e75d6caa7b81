import { expect, test } from 'bun:test'
import { type AppKind, parseAppFile } from './app-files.ts'

const APP = 'ABCDE12345.com.example.app'
const FINGERPRINT = Array.from({ length: 32 }, () => 'A0').join(':')
const target = { namespace: 'android_app', package_name: 'com.example.app' }
const statement = {
  relation: ['x'],
  target: { ...target, sha256_cert_fingerprints: [FINGERPRINT] },
}
const webStatement = { relation: ['x'], target: { namespace: 'web', site: 'https://go.example' } }

test.each([
  ['apple', { applinks: { details: [{ appIDs: [APP], components: [{ '/': '/a/*' }] }] } }],
  ['apple', { applinks: { apps: [], details: [{ appID: APP, paths: ['*'] }] }, more: 1 }],
  ['apple', { webcredentials: { apps: [APP] } }],
  ['android', [statement, webStatement]],
] as const)('a file for %s with the keys of its maker is stored as it is: %j', (kind, file) => {
  const text = JSON.stringify(file, null, 2)
  expect(parseAppFile(kind, text)).toBe(text)
  expect(parseAppFile(kind, `\u{feff}${text.replaceAll('\n', '\r\n')}`)).toBe(text)
})

const refused: [AppKind, unknown, string][] = [
  ['apple', [], 'it '],
  ['apple', {}, 'applinks '],
  ['apple', { applinks: {} }, 'applinks.details '],
  ['apple', { applinks: { details: {} } }, 'applinks.details '],
  ['apple', { applinks: { details: [{}] } }, 'applinks.details[0].appIDs '],
  ['apple', { applinks: { details: [{ appIDs: [] }] } }, 'applinks.details[0].appIDs '],
  [
    'apple',
    { applinks: { details: [{ appIDs: [APP, 'app'] }] } },
    'applinks.details[0].appIDs[1] ',
  ],
  ['apple', { webcredentials: { apps: APP } }, 'webcredentials.apps '],
  ['apple', null, 'it '],
  ['android', {}, 'it '],
  ['android', [], 'it '],
  ['android', [{ ...statement, relation: 'x' }], '[0].relation '],
  ['android', [{ relation: ['x'] }], '[0].target '],
  ['android', [statement, { ...statement, target: { namespace: 'ios' } }], '[1].target.namespace '],
  ['android', [{ ...statement, target }], '[0].target.sha256_cert_fingerprints '],
  [
    'android',
    [{ ...statement, target: { ...target, sha256_cert_fingerprints: ['A0:B1'] } }],
    '[0].target.sha256_cert_fingerprints[0] ',
  ],
]
test.each(refused)('a file for %s names the key that is wrong: %j', (kind, file, key) => {
  expect(() => parseAppFile(kind, JSON.stringify(file))).toThrow(`: ${key}`)
})

test('what is no JSON is refused, also 100 KB of brackets', () => {
  for (const text of ['', '{', `${'['.repeat(100_000)}`, 'null}', "{'a': 1}"]) {
    expect(() => parseAppFile('android', text)).toThrow('JSON')
  }
})
