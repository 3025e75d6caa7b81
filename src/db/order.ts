import type { Database } from 'bun:sqlite'
import type { Outcome } from '../lib/thread.ts'
import { commitTogether } from './writer.ts'

interface OrderedCall {
  name: string
  args: unknown
}

/** Decides in which order writes happen. */
export interface Order {
  /** One outcome per call, once the calls are durable and applied on this host. */
  submit(calls: readonly OrderedCall[]): Outcome[] | Promise<Outcome[]>
  /** How many entries of a shared order are applied; 0 without one. */
  readonly place: number
  close(): void | Promise<void>
}

/** The order of a single host: that in which the writer thread receives calls. */
export class LocalOrder implements Order {
  readonly place = 0
  readonly #db: Database
  readonly #functions: object

  constructor(db: Database, functions: object) {
    this.#db = db
    this.#functions = functions
  }

  submit(calls: readonly OrderedCall[]): Outcome[] {
    return commitTogether(this.#db, this.#functions, calls)
  }

  close(): void {}
}
