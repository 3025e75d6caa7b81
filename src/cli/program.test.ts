import { expect, spyOn, test } from 'bun:test'
import { createProgram } from './program.ts'

/** The result of a command line that ends before its command begins. */
async function run(line: string) {
  const words = line.split(' ').filter((word) => word !== '')
  using out = spyOn(console, 'log').mockImplementation(() => {})
  using err = spyOn(console, 'error').mockImplementation(() => {})
  const program = createProgram(async () => {
    throw new Error('the service was started')
  })
  const ended = program.parseAsync(words, { from: 'user' }).then(
    () => 0,
    (error) => error.exitCode,
  )
  const exitCode = await ended
  return { exitCode, out: out.mock.calls.join('\n'), err: err.mock.calls.join('\n') }
}

const WRONG: [line: string, ...says: string[]][] = [
  ['frobnicate', 'frobnicate'],
  ['account', 'account create'],
  ['acount list', 'acount', 'account'],
  ['account crate', 'crate', 'create'],
  ['account frobnicate', 'frobnicate'],
  ['bakcup today.hopcode', 'bakcup', 'backup'],
  ['help acount', 'acount'],
  ['help frobnicate', 'frobnicate'],
  ['frobnicate --help', 'frobnicate'],
  ['account frobnicate --help', 'frobnicate'],
  ['constructor', 'constructor'],
  ['--json', '--json'],
  ['account create extra --email a@example.com --plan pro', 'extra'],
  ['account create --plan pro', '--email'],
  ['account create --email nobody --plan pro', '--email', 'nobody'],
  ['account create --email a@example.com', '--plan'],
  ['account create --email a@example.com --plan gold', 'gold', 'free, pro, enterprise'],
  ['account create --email a@example.com --plan pro --now', '--now'],
  ['serve --json', '--json'],
  ['account list --verbose', '--verbose'],
  ['account create --mail a@example.com', '--email'],
  ['account create --email --plan pro', '--email'],
  ['account create --plan pro --email', '--email'],
  ['account create --email= --plan pro', '--email'],
  ['account list --json=yes', '--json=yes'],
  ['key revoke --email a@example.com --name=', '--name'],
  ['key revoke --email a@example.com --name --now', '--name'],
  ['maintenance on', '--until'],
  ['maintenance on --until soon', '--until', 'soon'],
  ['backup', 'FILE'],
  ['restore one.hopcode two.hopcode', 'two.hopcode'],
  ['restore one.hopcode --yes', '--yes'],
  ['import', 'FILE'],
  ['link', 'link disable', 'link enable'],
  ['link disable --reason x', 'LINK'],
  ['link disable SPRING26', '--reason'],
  ['link disable SPRING26 SUMMER26 --reason x', 'SUMMER26'],
  ['link disabled SPRING26', 'SPRING26'],
  ['check one.hopcode', 'one.hopcode'],
]
test.each(WRONG)('hopcode %s is refused', async (line, ...says) => {
  const { exitCode, out, err } = await run(line)
  expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' })
  for (const text of says) expect(err).toContain(text)
})

test.each([
  ['--help', 'Usage: hopcode COMMAND'],
  ['-h', 'Usage: hopcode COMMAND'],
  ['help', 'Usage: hopcode COMMAND'],
  ['account -h', 'Usage: hopcode account COMMAND'],
  ['help account', 'Usage: hopcode account COMMAND'],
  ['help link disable', 'Usage: hopcode link disable LINK --reason <TEXT>'],
  ['account create --help', 'Usage: hopcode account create --email <E> --plan <P> [options]'],
  ['import --help', 'Usage: hopcode import [FORMAT] FILE [options]'],
  ['help settings', 'Settings come from the environment.'],
  ['version', ''],
  ['-v', ''],
  ['--version', ''],
])('hopcode %s prints on standard output', async (line, start) => {
  const { exitCode, out, err } = await run(line)
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
  expect(out).toStartWith(start)
  expect(out).not.toBe('')
})

test('the help of each command begins with its usage and has no line of a sign alone', async () => {
  const lines = ['help', '--help', 'help account', 'help shorten', 'help link', 'help help']
  for (const line of lines) {
    const { out } = await run(line)
    expect(out).toStartWith('Usage: hopcode')
    expect(out.split('\n').filter((one) => /^\W+$/.test(one))).toEqual([])
  }
})

test('the help of the program has each command in one group', async () => {
  const { out } = await run('help')
  const groups = new Map(
    out
      .split(/\n(?=\S.*:\n)/)
      .map((part) => [
        part.split('\n')[0],
        [...part.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name),
      ]),
  )
  const grouped = [...groups].filter(([title]) => !/^(Usage|Options)/.test(title ?? ''))
  expect(grouped.length).toBeGreaterThan(3)
  const names = grouped.map(([, list]) => [...new Set(list)])
  expect(new Set(names.flat()).size).toBe(names.flat().length)
  for (const pair of [
    ['links', 'link'],
    ['account', 'key'],
    ['backup', 'restore'],
    ['help', 'version'],
  ]) {
    expect(names.filter((list) => pair.every((name) => list.includes(name)))).toHaveLength(1)
  }
  expect(grouped.flatMap(([, list]) => list)).toContain('cluster')
})
