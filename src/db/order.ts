import type { Database } from 'bun:sqlite'
import type { Call, Outcome } from '../lib/thread.ts'
import { commitTogether } from './writer.ts'

/** Decides in which order writes happen. */
export interface Order {
  /** One outcome per call, once the calls are durable and applied on this host. */
  submit(calls: readonly Call[]): Outcome[] | Promise<Outcome[]>
  /** How many entries of a shared order are applied; 0 without one. */
  readonly place: number
  close(): void | Promise<void>
}

/** The order of a single host: the order in which the writer thread receives calls. */
export const localOrder = (db: Database, functions: object): Order => ({
  place: 0,
  submit: (calls) => commitTogether(db, functions, calls),
  close() {},
})
