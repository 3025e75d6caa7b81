/** Shown in one line of a table. */
export const REASON_LENGTH_MAX = 200

/** What is wrong with a reason, for the form and the command line. */
export const BAD_REASON = `must be one line of 1 to ${REASON_LENGTH_MAX} characters`

/** Why a link is disabled, as it is stored; undefined for a text that cannot be a reason. */
export function parseReason(text: string): string | undefined {
  const reason = text.trim()
  if (reason === '' || reason.length > REASON_LENGTH_MAX) return undefined
  return reason.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(reason) ? reason : undefined
}
