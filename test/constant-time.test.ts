/** No test can time a comparison of hashes for certain: so its form is held fast. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashesEqual } from '../src/accounts/secrets.ts'

const ROOT = join(import.meta.dir, '..')

/** Ways to compare that stop at the first difference. */
const HASTY = [
  /(?<!typeof )\b\w*(hash|digest|mac)\w*(\([^)]*\))?\s*[!=]==\s*(?=\S)(?!undefined|null|['"\d])/i,
  /[!=]==\s*\w*(hash|digest|mac)\b/i,
  /\b(Buffer\.compare|Bun\.deepEquals)\(/,
  /\.(equals|compare)\(/i,
  /\.toString\([^)]*\)\s*[!=]==|[!=]==.*\.toString\(/,
]

const findHasty = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => !/^\s*(\*|\/\/|\/\*)/.test(line))
    .filter((line) => HASTY.some((pattern) => pattern.test(line)))

const sources = [...new Bun.Glob('src/{accounts,dashboard,links}/**/*.ts').scanSync(ROOT)]
  .filter((path) => !path.endsWith('.test.ts'))
  .sort()

test('hashes are compared by hashesEqual alone', () => {
  expect(sources.length).toBeGreaterThan(20)
  const found = sources.flatMap((path) =>
    findHasty(readFileSync(join(ROOT, path), 'utf8')).map((line) => `${path}: ${line.trim()}`),
  )
  expect(found).toEqual([])
  for (const bad of [
    'if (presentedHash === link.passcodeHash) return link',
    'return one.length === other.length && one.equals(other)',
    'const matches = Buffer.compare(a, b) === 0',
    "if (mac.toString('hex') === expectedMac) return true",
    'return macOf(hasher, device) === mac',
    "const matches = presented.toString('hex') === stored",
  ]) {
    expect([bad, findHasty(bad)]).toEqual([bad, [bad]])
  }
})

test.each(['src/links/permit.ts', 'src/accounts/sign-in.ts', 'src/dashboard/same-origin.ts'])(
  '%s judges what it is shown by hashesEqual',
  (path) => {
    expect(readFileSync(join(ROOT, path), 'utf8')).toMatch(/(?<!import .*)\bhashesEqual\(/)
  },
)

test('hashesEqual leaves the comparison to the system’s constant-time one', () => {
  const source = readFileSync(join(ROOT, 'src/accounts/secrets.ts'), 'utf8')
  expect(source).toMatch(/import \{[^}]*\btimingSafeEqual\b[^}]*\} from 'node:crypto'/)
  const body = /export function hashesEqual\([^{]*\{([^}]*)\}/.exec(source)?.[1]?.trim()
  expect(body).toBe('return one.length === other.length && timingSafeEqual(one, other)')
  const hash = new Uint8Array(32).fill(7)
  expect([hashesEqual(hash, hash.slice()), hashesEqual(hash, hash.with(31, 8))]).toEqual([
    true,
    false,
  ])
})
