import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REFUSALS } from './errors.ts'

/**
 * The words of all refusals in one file, so that a review shows each change of them. Other tests
 * ask for codes and fields; those of rows of the contract have its words.
 */

const FILE = join(import.meta.dir, 'errors.messages.txt')

const LITERAL = String.raw`(?:'(?:[^'\\\n]|\\.)*'|\`[^\`]*\`)`
const LITERALS = String.raw`(${LITERAL}(?:\s*\+\s*${LITERAL})*)`
const BEGIN = 'Invalid |Unknown |Missing |(?:urls )?[Mm]ust '
/** What a form or a value is refused with, and the reasons that schemas have. */
const REASONS = [
  String.raw`\b(?:refuse\(|refuseAt\(\s*[^,()]+,|'invalid_value',)\s*${LITERALS}`,
  String.raw`(?<!\w|replace\()(?=['\`](?:${BEGIN}))${LITERALS}`,
].map((pattern) => new RegExp(pattern, 'g'))

/** Their values are settings and commands, whose words go to operators. */
const OTHERS = /\.test\.ts$|^cli\/|^config\.ts$|^errors\.ts$/

const reasonsIn = (text: string): string[] =>
  REASONS.flatMap((pattern) => [...text.matchAll(pattern)])
    .map(([, found = '']) => found.replaceAll(/['`]\s*\+\s*['`]/g, '').slice(1, -1))
    .map((found) => found.replaceAll(/\$\{[^}]*\}/g, '…'))
    .filter((found) => / .* /.test(found))

test('all words of refusals are in errors.messages.txt, which WORDS=1 npm test writes', () => {
  const codes = Object.entries(REFUSALS).map(
    ([code, { status, message }]) => `${status} ${code}: ${message('…')}`,
  )
  const paths = [...new Bun.Glob('**/*.ts').scanSync(import.meta.dir)]
  const texts = paths
    .filter((path) => !OTHERS.test(path))
    .map((path) => readFileSync(join(import.meta.dir, path), 'utf8'))
  const reasons = [...new Set(texts.flatMap(reasonsIn))].sort()
  expect(reasons.length).toBeGreaterThan(100)
  const words = `${codes.join('\n')}\n\n${reasons.join('\n')}\n`
  if (process.env.WORDS === '1') writeFileSync(FILE, words)
  expect(readFileSync(FILE, 'utf8')).toBe(words)
})
