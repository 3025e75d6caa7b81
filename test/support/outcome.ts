import type { Answer } from './app.ts'

/** What a row of a table expects, with the row's name, so that a failure tells which row it was. */
export const outcome = (at: string, { status, body }: Answer) => ({ at, status, body })
