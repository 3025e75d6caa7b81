import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { Command } from '@commander-js/extra-typings'
import { print, printNotice } from '../lib/log.ts'
import { CommandError } from './errors.ts'
import { readText } from './input.ts'
import { parseText } from './options.ts'
import { explained, keyHolder, REMOTE, requireOne, target } from './remote.ts'

/** `link`: the group of commands. */
export function addLinkPasswordCommand(link: Command): void {
  link
    .command('password')
    .summary('set or remove the password that visitors of your link must enter')
    .description(
      'Set the password that visitors of your link must enter. It is read from the terminal ' +
        `without being shown, or as one line of standard input. ${REMOTE}`,
    )
    .argument('<LINK>', 'its code, alias, short URL or title', parseText)
    .option('--remove', 'remove the password')
    .action(async (text, { remove }) => {
      const service = await target()
      const { code, display_url } = await requireOne(service, text)
      const password = remove ? null : await readPassword()
      await explained(service.url, keyHolder(service).patchLink(code, { password }))
      print(`${display_url} ${remove ? 'has no password.' : 'asks for its password.'}`)
    })
}

/** Never from an argument, which other users of the machine and the history of the shell see. */
async function readPassword(): Promise<string> {
  const password = process.stdin.isTTY ? await askTwice() : oneLine(await readText('-'))
  if (password === '') throw new CommandError('no password was entered')
  return password
}

function oneLine(text: string): string {
  const line = text.replace(/\r?\n$/, '')
  if (/[\r\n]/.test(line)) throw new CommandError('standard input must have one line')
  return line
}

/** From the terminal, which does not show it. */
async function askTwice(): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true })
  terminal.once('SIGINT', () => terminal.close())
  const lines = terminal[Symbol.asyncIterator]()
  const ask = async (question: string): Promise<string> => {
    await printNotice(question)
    const { value = '' } = await lines.next()
    return value
  }
  try {
    const password = await ask('Password (not shown):')
    if (password !== '' && password !== (await ask('The same again:'))) {
      throw new CommandError('the two passwords differ')
    }
    return password
  } finally {
    terminal.close()
  }
}
