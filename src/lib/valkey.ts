import { RedisClient } from 'bun'
import type { Log } from './log.ts'

/** A request waits for the server at most this long, plus GRACE_MS. */
const TIMEOUT_MS = 90
/** After a long task of this thread, replies that have arrived are read before they time out. */
const GRACE_MS = 10
const CONNECT_TIMEOUT_MS = 2000
const RETRY_MS = 500
/** Maximum number of commands without a reply. Beyond this, this host decides alone. */
const WAITING_MAX = 10_000
/** A test write, because a replica or a full server refuses writes. */
const PROBE = "return redis.call('SET', KEYS[1], 1, 'PX', 1000)"

/** A Lua script that returns whole numbers. */
export interface Script {
  text: string
  sha: string
}

export const script = (text: string): Script => ({
  text,
  sha: new Bun.CryptoHasher('sha1').update(text).digest('hex'),
})

interface ValkeyOptions {
  /** May contain a password. */
  url: string
  log: Log
  timeoutMs?: number | undefined
}

interface Connection {
  client: RedisClient
  /** Ends the connection. */
  fail: (reason: string) => void
}

/**
 * A connection to Valkey, or to another server of the Redis protocol, for limits that several hosts
 * share. After a command that failed or was too slow, the connection is closed, and until a new one
 * works no command is sent: at most the requests of one moment wait for a server that hangs.
 */
export class Valkey {
  /** Resolves when the first attempt to connect has succeeded or failed. */
  readonly tried: Promise<void>
  readonly #options: ValkeyOptions
  readonly #tried = Promise.withResolvers<void>()
  readonly #closing = Promise.withResolvers<void>()
  #connection: Connection | undefined
  #isUp: boolean | undefined
  #isClosed = false
  #waiting = 0

  constructor(options: ValkeyOptions) {
    this.#options = options
    this.tried = this.#tried.promise
    void this.#keepConnected()
  }

  get isUp(): boolean {
    return this.#connection !== undefined
  }

  /** The script's result; undefined if the server does not answer in time. */
  async run(
    { sha, text }: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<readonly number[] | undefined> {
    const connection = this.#connection
    if (!connection || this.#waiting >= WAITING_MAX) return undefined
    const rest = [String(keys.length), ...keys, ...args.map(String)]
    const send = (command: string, source: string) =>
      connection.client.send(command, [source, ...rest])
    this.#waiting++
    try {
      const known = send('EVALSHA', sha).catch((error) => {
        if (reasonOf(error) !== 'NOSCRIPT') throw error
        return send('EVAL', text)
      })
      return await this.#inTime(known)
    } catch (error) {
      connection.fail(reasonOf(error))
      return undefined
    } finally {
      this.#waiting--
    }
  }

  close(): void {
    this.#isClosed = true
    this.#connection?.fail('closed')
    this.#closing.resolve()
  }

  async #keepConnected(): Promise<void> {
    while (!this.#isClosed) {
      const reason = await this.#serve()
      this.#report(false, reason)
      await Promise.race([Bun.sleep(RETRY_MS), this.#closing.promise])
    }
  }

  /** Connects, and returns why the connection ended or failed. */
  async #serve(): Promise<string> {
    const { promise: failed, resolve } = Promise.withResolvers<string>()
    let client: RedisClient | undefined
    const fail = (reason: string) => {
      this.#connection = undefined
      resolve(reason)
      // Commands that still wait for a reply fail at once.
      client?.close()
    }
    try {
      client = new RedisClient(this.#options.url, {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        autoReconnect: false,
        enableOfflineQueue: false,
      })
      client.onclose = () => fail('connection closed')
      await client.connect()
      await this.#inTime(client.send('EVAL', [PROBE, '1', 'hopcode:probe']))
      if (this.#isClosed) fail('closed')
      else {
        this.#connection = { client, fail }
        this.#report(true)
      }
    } catch (error) {
      fail(reasonOf(error))
    }
    return await failed
  }

  async #inTime<Result>(work: Promise<Result>): Promise<Result> {
    const late = Promise.withResolvers<never>()
    let timer = setTimeout(() => {
      timer = setTimeout(() => late.reject(new Timeout()), GRACE_MS)
    }, this.#options.timeoutMs ?? TIMEOUT_MS)
    // It may fail after the time limit.
    work.catch(() => {})
    try {
      return await Promise.race([work, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Logs changes only. */
  #report(isUp: boolean, reason?: string): void {
    this.#tried.resolve()
    if (isUp === this.#isUp || this.#isClosed) return
    if (isUp) this.#options.log.info('shared_limits.up')
    else this.#options.log.warn('shared_limits.down', { reason })
    this.#isUp = isUp
  }
}

class Timeout extends Error {}

/** Without the message, which may contain the URL or a key: `NOAUTH` or `ERR_REDIS_…`. */
function reasonOf(error: unknown): string {
  if (error instanceof Timeout) return 'timeout'
  const { code, message } = error as { code?: string; message?: string }
  if (code !== 'ERR_REDIS_SERVER_ERROR') return code ?? 'failed'
  return /^[A-Z]+/.exec(message ?? '')?.[0] ?? code
}
