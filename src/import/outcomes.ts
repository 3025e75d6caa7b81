/** What became of a row of an import, in words for a person. Each row has exactly one. */
export const OUTCOME_WORDS = {
  created: 'created',
  created_alias: 'created, with the path as an alias',
  created_paused: 'created, paused',
  exists: 'exists already',
  kept: 'exists with another destination, not changed',
  left_out: 'left out, as you chose',
  other_domain: 'left out, of another domain',
  repeated: 'left out, repeats an earlier row',
  path_taken: 'refused: the path is in use',
  reserved_path: 'refused: the path belongs to the service itself',
  invalid_path: 'refused: the path is not possible',
  invalid_url: 'refused: the destination is not possible',
  blocked: 'refused: the destination is blocked',
  quota: 'refused: over the quota of the plan',
  unknown_domain: 'refused: its domain is not a domain of this service',
  not_allowed: 'refused: only owners of the service can add aliases',
  bad_row: 'refused: the row cannot be read',
} as const
export type Outcome = keyof typeof OUTCOME_WORDS
export const OUTCOMES = Object.keys(OUTCOME_WORDS) as Outcome[]

const UNREAD_SHOWN_MAX = 20
const NAME_SHOWN_MAX = 40

/** Names the columns of a file that were not read. Empty if there are none. */
export function unreadText(names: readonly string[]): string {
  if (names.length === 0) return ''
  const shown = names.slice(0, UNREAD_SHOWN_MAX).map((name) => name.slice(0, NAME_SHOWN_MAX))
  const more = names.length > UNREAD_SHOWN_MAX ? ', …' : ''
  const what = names.length === 1 ? 'This column was not read' : 'These columns were not read'
  return `${what}: ${shown.join(', ')}${more}.`
}

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
