import { expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { testWith } from '../../test/support/tools.ts'
import { createProgram } from './program.ts'

const createUnusedProgram = () =>
  createProgram(async () => {
    throw new Error('the service was started')
  })

async function scriptFor(shell: string): Promise<string> {
  using out = spyOn(console, 'log').mockImplementation(() => {})
  await createUnusedProgram().parseAsync(['completion', shell], { from: 'user' })
  return `${out.mock.calls.join('\n')}\n`
}

async function runShell(args: string[]): Promise<string> {
  const child = Bun.spawn(args, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  expect([code, err]).toEqual([0, ''])
  return out
}

/** What bash offers for the last word of each line. */
async function completeInBash(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const steps = lines.map((words) => {
    const typed = ['hopcode', ...words].map((word) => `'${word}'`).join(' ')
    return `COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _hopcode; echo "\${COMPREPLY[*]}"`
  })
  const script = [await scriptFor('bash'), 'complete -p hopcode', ...steps].join('\n')
  const [registered, ...found] = (await runShell(['bash', '-c', script])).trimEnd().split('\n')
  expect(registered).toBe('complete -F _hopcode hopcode')
  return lines.map((_, at) => (found[at] ?? '').split(' ').filter((word) => word !== ''))
}

const FILE = join(import.meta.dir, 'administration.ts')
const HALF = FILE.slice(0, -2)

test.each([
  [['acc'], ['account']],
  [['account', 'cr'], ['create']],
  [['account', 'create', '--pl'], ['--plan']],
  [
    ['account', 'create', '--plan', ''],
    ['free', 'pro', 'enterprise'],
  ],
  [['export', 'links.csv', '--format', 'c'], ['csv']],
  [['account', 'create', '--plan', '=', 'p'], ['pro']],
  [
    ['account', 'create', '--plan', '='],
    ['free', 'pro', 'enterprise'],
  ],
  // A value is no command.
  [['account', 'create', '--email', ''], []],
  [['export', '--account', 'account', '--fo'], ['--format']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [['import', 'shl'], ['shlink']],
  [['import', HALF], [FILE]],
  [['import', 'shlink', HALF], [FILE]],
  [['backup', HALF], [FILE]],
  [['restore', HALF], [FILE]],
  [['export', HALF], [FILE]],
  [['import', '--report', HALF], [FILE]],
  [['import', '--re'], ['--report']],
  // No file is asked for.
  [['link', 'enable', HALF], []],
  [['help', 'acc'], ['account']],
  [['help', 'account', 'cr'], ['create']],
  [['help', 'set'], ['settings']],
])('bash completes %p with %p', async (words, offered) => {
  expect(await completeInBash([words])).toEqual([offered])
})

/** Each command with its path, as words. */
function all(command: CommandUnknownOpts, path: string[] = []): [string[], CommandUnknownOpts][] {
  return [[path, command], ...command.commands.flatMap((one) => all(one, [...path, one.name()]))]
}

test('bash offers every subcommand and every option of every command', async () => {
  const commands = all(createUnusedProgram())
  const words = await completeInBash(commands.map(([path]) => [...path, '']))
  const options = await completeInBash(commands.map(([path]) => [...path, '-']))
  expect(commands.length).toBeGreaterThan(20)
  for (const [at, [path, command]] of commands.entries()) {
    const names = command.commands.map((one) => one.name())
    const longs = command.options.map(({ long }) => long as string)
    expect([path, words[at]]).toEqual([path, expect.arrayContaining(names)])
    // The operands of help are commands.
    const all = path[0] === 'help' ? [] : [...longs, '--help']
    expect([path, options[at]]).toEqual([path, expect.arrayContaining(all)])
  }
})

testWith('zsh')('zsh registers the function', async () => {
  const script = `autoload -Uz compinit && compinit -u -D\n${await scriptFor('zsh')}`
  expect(await runShell(['zsh', '-fc', `${script}print $_comps[hopcode]`])).toBe('_hopcode\n')
})

testWith('fish').each([
  ['acc', 'account'],
  ['account cr', 'create'],
  ['account create --plan p', 'pro'],
  ['account create --plan=p', '--plan=pro'],
  ['export links.csv --form', '--format'],
  ['import yo', 'yourls'],
  ['help account cr', 'create'],
  ['link enable comp', ''],
  ['import src/cli/administration.t', 'src/cli/administration.ts'],
])('fish completes hopcode %s with %s', async (line, word) => {
  const script = `${await scriptFor('fish')}complete -C 'hopcode ${line}'`
  const lines = (await runShell(['fish', '--no-config', '-c', script])).trimEnd().split('\n')
  expect(lines.map((one) => one.split('\t')[0])).toEqual([word])
})
