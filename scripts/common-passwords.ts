/**
 * Writes src/accounts/common-passwords.txt from a copy of the package @zxcvbn-ts/language-common:
 * `bun scripts/common-passwords.ts <folder of the package>`.
 */
import { dirname, join, resolve } from 'node:path'

const COUNT = 3000
const LENGTH_MIN = 8

const folder = resolve(process.argv[2] ?? '.')
const { dictionary } = await import(join(folder, 'dist/index.mjs'))
const { version } = await Bun.file(join(folder, 'package.json')).json()
const license = await Bun.file(join(folder, 'LICENSE.txt')).text()

const passwords = (dictionary['passwords-common'] as string[])
  .filter((password) => password.length >= LENGTH_MIN)
  .slice(0, COUNT)
const header = [
  `The ${COUNT} commonest passwords of ${LENGTH_MIN} characters and more, commonest first.`,
  `From @zxcvbn-ts/language-common ${version}, under this licence:`,
  '',
  ...license.trim().split('\n'),
]
const lines = [...header.map((line) => `# ${line}`.trim()), ...passwords]
const target = join(dirname(import.meta.dir), 'src/accounts/common-passwords.txt')
await Bun.write(target, `${lines.join('\n')}\n`)
