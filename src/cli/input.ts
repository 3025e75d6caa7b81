import { readFile } from 'node:fs/promises'
import { messageOf } from '../lib/thread.ts'
import { utf8Text } from '../lib/utf8.ts'
import { CommandError } from './errors.ts'

/** The text of a file, or of standard input (`-`). Throws CommandError. */
export async function readText(file: string): Promise<string> {
  const name = file === '-' ? 'standard input' : file
  const read = file === '-' ? Bun.stdin.bytes() : readFile(file)
  const bytes = await read.catch((error: unknown) => {
    throw new CommandError(`${name} cannot be read: ${messageOf(error)}`)
  })
  const text = utf8Text(bytes)
  if (text === undefined) throw new CommandError(`${name} is not UTF-8`)
  return text
}
