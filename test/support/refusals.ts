import { expect } from 'bun:test'
import { REFUSALS } from '../../src/errors.ts'

/** Refusals by their code: `src/errors.messages.txt` lists what each says. */

export const messageOf = (code: keyof typeof REFUSALS, detail = ''): string =>
  REFUSALS[code].message(detail)

/** The message about a field whose value is refused, whatever it says of the value. */
export const invalid = (field: string): string => expect.stringContaining(`Invalid ${field}: `)
