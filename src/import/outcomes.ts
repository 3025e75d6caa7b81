/** What became of a row of an import. Each row has exactly one. */
export const OUTCOMES = [
  'created',
  'created_alias',
  'created_paused',
  'exists',
  'kept',
  'left_out',
  'other_domain',
  'repeated',
  'path_taken',
  'reserved_path',
  'invalid_path',
  'invalid_url',
  'blocked',
  'quota',
  'not_allowed',
  'bad_row',
] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Rows that need no attention: created, there already, or left out on request. */
const FINE: ReadonlySet<Outcome> = new Set(OUTCOMES.slice(0, OUTCOMES.indexOf('path_taken')))
export const isFine = (outcome: Outcome): boolean => FINE.has(outcome)

export const isCreated = (outcome: Outcome): boolean => outcome.startsWith('created')

export interface RowResult {
  outcome: Outcome
  /** Code of the link that was created, or that has the path. */
  code: string | null
  message: string
}

export const refused = (outcome: Outcome, message: string): RowResult => ({
  outcome,
  code: null,
  message,
})
