import type { Code } from '../lib/code.ts'
import type { Author } from './author.ts'

interface OfLink {
  what: 'link'
  /** The account that has the link, or had it until it was deleted. */
  accountId: number
  linkId: number
  code: Code
  /** Aliases that were added or removed. */
  addresses: readonly { domainId: number; path: string }[]
  /** Properties by the names of the API. Empty if the write has left all of them as they were. */
  changed: readonly string[]
  /** The destination, where it has changed or its link is new or gone; not of an imported link. */
  url?: { before: string | null; after: string | null } | undefined
  /**
   * Absent for what the service does by itself, and after the commit of a write of another host of
   * a cluster. Inside the transaction, every host knows it.
   */
  author?: Author | undefined
  /** When, inside the transaction, where no author says it. */
  at?: number | undefined
}

/** `found`: the account had it already for the URL that it shortened, and nothing has changed. */
type Creation = { kind: 'created' | 'found'; domainId: number; isImported: boolean }
type Move = { kind: 'moved'; fromAccountId: number }
/** `restored`: its deletion was scheduled, and is canceled. */
type Change = { kind: 'changed' | 'disabled' | 'enabled' | 'deleted' | 'restored' }
/** Its destination does not answer, or answers again. */
type Checked = { kind: 'dead' | 'alive' }

export type LinkEvent = OfLink & (Creation | Move | Change | Checked)

/** What a write has done: see `Write.events`. */
export type Event =
  | LinkEvent
  /** What any link answers may have changed: rules of accounts, domains, hosts or many aliases. */
  | { what: 'rules_changed' }
  /** By another host of the cluster. */
  | { what: 'hits_added' }
  /** Its links are gone, and what subjects have in `forget`. */
  | { what: 'account_removed'; accountId: number }

export const RULES_CHANGED: readonly Event[] = [{ what: 'rules_changed' }]
export const HITS_ADDED: readonly Event[] = [{ what: 'hits_added' }]

/**
 * Follows committed writes on the control thread, in the tick in which the commit is known and
 * before the write is acknowledged. It must neither wait nor throw.
 */
export type EventReader = (events: readonly Event[]) => void
