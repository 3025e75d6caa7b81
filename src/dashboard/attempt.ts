import { AppError } from '../errors.ts'
import type { Extra } from './answers.ts'

/** Refusals of a form: what is wrong with a field, or that it is too early to try again. */
const SHOWN = new Set([400, 409, 422, 429])

/**
 * Does what a form asks for. Gives a refusal that belongs on the form's own page, where nothing
 * that was typed is lost; every other error is thrown.
 */
export async function attempt<Result>(
  work: () => Promise<Result>,
): Promise<{ done: Result } | { refused: AppError }> {
  try {
    return { done: await work() }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (SHOWN.has(error.status) || isForLater(error)) return { refused: error }
    throw error
  }
}

/** No field is wrong: the same form will pass later. */
export const isForLater = ({ code }: AppError): boolean =>
  code === 'rate_limited' || code === 'maintenance'

/** The status and headers of a form's page that shows a refusal. */
export function refusedAs(refused: AppError): Extra {
  return isForLater(refused)
    ? { status: refused.status, headers: refused.headers }
    : { status: 422 }
}
