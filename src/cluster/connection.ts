import { connect } from 'node:net'
import { SQL } from 'bun'
import { withTimeout } from '../lib/deadline.ts'

/** A statement that takes longer fails, and its connection is replaced. */
export const STATEMENT_MS = 2000
/** With TLS, PostgreSQL accepts a connection after some eight round trips. */
export const CONNECT_MS = 4000

export type Row = Record<string, unknown>

/** `max`: each connection has one role, so that no statement waits for that of another role. */
export const CONNECTION = {
  max: 1,
  idleTimeout: 0,
  maxLifetime: 0,
  connectionTimeout: CONNECT_MS / 1000,
}

/** One connection, opened on first use. One that fails or hangs is replaced. */
export class Connection {
  readonly #url: string
  readonly #parameters: Record<string, string>
  #sql: SQL | undefined

  constructor(url: string, parameters: Record<string, string> = {}) {
    this.#url = url
    // Later than the time limit here, which is the reason that people read.
    this.#parameters = { statement_timeout: String(STATEMENT_MS + 500), ...parameters }
  }

  async run<Result = Row[]>(
    statement: (sql: SQL) => Promise<Result>,
    ms = STATEMENT_MS,
  ): Promise<Result> {
    const sql = this.#open()
    try {
      await withTimeout(CONNECT_MS, sql.connect(), NOT_ANSWERING)
      return await withTimeout(ms, statement(sql), NOT_ANSWERING)
    } catch (error) {
      this.#drop(sql)
      throw new Error(reasonOf(error), { cause: error })
    }
  }

  async close(): Promise<void> {
    const closed = this.#sql?.close({ timeout: 0 })
    if (closed) await withTimeout(STATEMENT_MS, closed, '').catch(() => {})
  }

  #open(): SQL {
    this.#sql ??= new SQL(this.#url, { ...CONNECTION, connection: this.#parameters })
    return this.#sql
  }

  #drop(sql: SQL): void {
    if (this.#sql === sql) this.#sql = undefined
    void sql.close({ timeout: 0 }).catch(() => {})
  }
}

export const NOT_ANSWERING = 'PostgreSQL does not answer'

/** What people read about a failed statement: a refusal, such as of the password, by its words. */
function reasonOf(error: unknown): string {
  const { code = '', errno, message } = error as Error & { code?: string; errno?: string }
  if (code.startsWith('ERR_POSTGRES_CONNECTION_') || message === NOT_ANSWERING) return NOT_ANSWERING
  return errno === QUERY_CANCELED ? NOT_ANSWERING : `PostgreSQL: ${message}`
}

const POSTGRES_PORT = 5432

/**
 * Why no connection to the server of a URL can be opened, such as `getaddrinfo ENOTFOUND db`:
 * the driver says only that it failed. Undefined if one can be opened.
 */
export async function connectionProblem(url: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const socket = connect({ host, port: Number(port) || POSTGRES_PORT, timeout: CONNECT_MS })
  socket.once('connect', () => resolve(undefined))
  socket.once('timeout', () => resolve('no answer'))
  socket.once('error', ({ message }) => resolve(message))
  return promise.finally(() => socket.destroy())
}

/** SQLSTATE. */
const QUERY_CANCELED = '57014'
