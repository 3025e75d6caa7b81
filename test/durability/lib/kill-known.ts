/** What the clients of a service have been told, and so what must hold after a kill. */

/** Where a code leads: its URL, or one of these. */
export type State = string
export const RESERVED = 'reserved'
export const DELETED = 'deleted'

/** How often something has happened: `least` times for sure, and no more than `most`. */
export class Tally {
  least = 0
  most = 0

  asked(): void {
    this.most++
  }

  happened(): void {
    this.least++
  }

  /** It was asked for and is known not to have happened. */
  refused(): void {
    this.most--
  }

  allows(count: number): boolean {
    return count >= this.least && count <= this.most
  }

  /** What was open has been seen. */
  settle(count: number): void {
    this.least = count
    this.most = count
  }

  toString(): string {
    return this.least === this.most ? `${this.least}` : `${this.least} to ${this.most}`
  }
}

export interface KnownLink {
  code: string
  /** The last that was acknowledged, and what was asked for after it. */
  states: State[]
  /** Absent where the answer that told it never came. */
  passcode?: string | undefined
  hits: Tally
  /** Never deleted, so that anyone may follow it at any time. */
  kept: boolean
  /** Something was asked of it since the last look. */
  touched: boolean
}

export class Known {
  readonly links = new Map<string, KnownLink>()
  /** URLs that several clients shorten at once, and the code that they were told. */
  readonly sharedCodes = new Map<string, string>()
  /** Redirects of all codes, deleted ones too. */
  readonly redirects = new Tally()
  /** Deletions of each code. */
  readonly deletions = new Map<string, Tally>()
  /** The URLs of creations whose answer never came: each group is there whole or not at all. */
  unanswered: string[][] = []
  /** Numbers that make URLs and codes new. */
  #made = 0

  next(): number {
    return ++this.#made
  }

  deletionsOf(code: string): Tally {
    const tally = this.deletions.get(code) ?? new Tally()
    this.deletions.set(code, tally)
    return tally
  }

  add(code: string, link: Partial<KnownLink> & { states: State[] }): KnownLink {
    const added = { code, hits: new Tally(), kept: false, touched: true, ...link }
    this.links.set(code, added)
    return added
  }

  /** Links whose state and passcode are known: clients may change them. */
  changeable(): KnownLink[] {
    return [...this.links.values()].filter(
      ({ states, passcode, kept }) => states.length === 1 && passcode !== undefined && !kept,
    )
  }

  followable(): KnownLink[] {
    return [...this.links.values()].filter(({ kept, states }) => kept && isActive(states[0]))
  }
}

export const isActive = (state: State | undefined): boolean => state?.startsWith('http') === true
