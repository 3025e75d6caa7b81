import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { z } from 'zod'
import { PLANS } from '../accounts/plans.ts'
import { type Clock, MINUTE, parseIsoTime } from '../lib/clock.ts'
import { BAD_REASON, parseReason as findReason } from '../moderation/moderation.ts'

/** Options of several commands, and parsers that refuse values. They throw InvalidArgumentError. */

/** The value of an option without an argument. */
export type Flag = boolean | undefined

export const JSON_LINES = ['--json', 'print JSON, one object per line'] as const
export const JSON_OBJECT = ['--json', 'print the result as one JSON object'] as const
export const EMAIL = ['--email <E>', 'the e-mail address of the account', parseEmail] as const
export const EMAIL_OF_PERSON = [
  '--email <E>',
  'the e-mail address of the person',
  parseEmail,
] as const
export const ACCOUNT_NAMED = [
  '--account <NAME>',
  'the name or the number of the account',
  parseText,
] as const
export const ACCOUNT = [
  '--account <NAME>',
  'the name or the number of the account; needed if the person has several',
  parseText,
] as const
export const PLAN = new Option('--plan <P>', 'the plan').choices(PLANS).makeOptionMandatory()

/** Refuses the value of an unset variable, and an option in place of the value. */
export function parseText(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must not be empty.')
  if (/^-./.test(text)) throw new InvalidArgumentError('It looks like an option.')
  return text
}

function parseEmail(text: string): string {
  if (z.email().max(254).safeParse(text).success) return text
  throw new InvalidArgumentError('It must be an e-mail address.')
}

export function parseReason(text: string): string {
  const reason = findReason(parseText(text))
  if (reason !== undefined) return reason
  throw new InvalidArgumentError(`It ${BAD_REASON}.`)
}

/** An ISO 8601 time, or a span from now: `30m`, `2h`, `1d`. Refuses a time in the past. */
export const untilParser =
  (clock: Clock) =>
  (text: string): number => {
    const now = clock()
    const span = /^(\d{1,4})([mhd])$/.exec(text)
    const minutes = { m: 1, h: 60, d: 24 * 60 }[span?.[2] ?? '']
    const until = span && minutes ? now + Number(span[1]) * minutes * MINUTE : parseIsoTime(text)
    if (until === undefined) {
      throw new InvalidArgumentError('It must be an ISO 8601 time or a span like 30m or 2h.')
    }
    if (until <= now) throw new InvalidArgumentError('It must be in the future.')
    return until
  }
