import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { MINUTE } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import type { Caller } from '../lib/thread.ts'
import type { Factor } from './second-factor-store.ts'
import type { SecretHasher } from './secrets.ts'
import type { SessionReads, SessionRow, SessionView, SessionWrites } from './session-store.ts'
import type { AccountId } from './store.ts'

const TOKEN_BYTES = 32
const TOKEN_SHAPE = /^[\w-]{43}$/
const AGENT_MAX_LENGTH = 200
/** Sightings on their way to the disk at once; beyond this, one waits for the next request. */
const TOUCHES_MAX = 1000

/** What a session is started with. */
export interface SignInProof {
  accountId: AccountId
  /** The stored hash that the password was verified against. */
  passwordHash: string
  /** Needed where two-factor sign-in is on. */
  factor?: Factor
}

interface SessionsOptions {
  reads: SessionReads
  writer: Caller<SessionWrites>
  hasher: SecretHasher
  clock: Clock
  random: RandomBytes
  /** A session that nobody has used for so long is over. */
  idleMs: number
  /** A session is over so long after its sign-in, used or not. */
  maxMs: number
}

/**
 * Sessions of the dashboard. The token is 256 random bits and known to the browser alone: the
 * database keeps a keyed hash of it. When a session was last seen is kept to the minute, so that a
 * page costs no write; an idle session may end that minute early, never late.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #touching = new Set<number>()

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  /**
   * Signs in: the new session, and the token that opens it. `replaces`: the token that the browser
   * had. Throws `sign_in_needed` when the password that let the visitor in is no longer the
   * account's, or the account asks for a second factor that was not given or is used up.
   */
  async start(
    { accountId, passwordHash, factor }: SignInProof,
    from: { address: string; agent: string; replaces: string | undefined },
  ): Promise<{ session: SessionRow; token: string }> {
    const { writer, clock, idleMs, maxMs } = this.#options
    const { token, hash } = this.newToken()
    const now = clock()
    const session = await writer.call('startSession', {
      passwordHash,
      factor,
      session: {
        ...{ hash, accountId, createdAt: now, address: from.address },
        agent: from.agent.slice(0, AGENT_MAX_LENGTH),
      },
      replaces: from.replaces === undefined ? undefined : this.#hash(from.replaces),
      startedBefore: now - maxMs,
      seenBefore: now - idleMs,
    })
    if (!session) throw new AppError('sign_in_needed')
    return { session, token }
  }

  /** Undefined for a token that is unknown, idle for too long, or too old. Notes the sighting. */
  find(token: string | undefined): SessionRow | undefined {
    if (token === undefined || !TOKEN_SHAPE.test(token)) return undefined
    const session = this.#options.reads.findByHash(this.#hash(token))
    const now = this.#options.clock()
    if (!session || this.#isOver(session, now)) return undefined
    this.#touch(session, now)
    return session
  }

  /** The sessions of an account that are not over, latest first. */
  list(accountId: AccountId): SessionView[] {
    const now = this.#options.clock()
    return this.#options.reads.list(accountId).filter((session) => !this.#isOver(session, now))
  }

  /** A token to take the place of a session's own, and the hash to store of it. */
  newToken(): { token: string; hash: Buffer } {
    const token = newToken(this.#options.random)
    return { token, hash: this.#hash(token) }
  }

  end(id: number, accountId: AccountId): Promise<void> {
    return this.#options.writer.call('endSession', { id, accountId })
  }

  endOthers(accountId: AccountId, keep: number): Promise<void> {
    return this.#options.writer.call('endSessions', { accountId, keep })
  }

  #isOver({ createdAt, seenAt }: SessionView | SessionRow, now: number): boolean {
    const { idleMs, maxMs } = this.#options
    return now - createdAt >= maxMs || now - seenAt >= idleMs
  }

  #touch({ id, seenAt }: SessionRow, now: number): void {
    const { writer, idleMs } = this.#options
    if (now - seenAt < Math.min(MINUTE, idleMs / 4)) return
    if (this.#touching.has(id) || this.#touching.size >= TOUCHES_MAX) return
    this.#touching.add(id)
    const written = writer.call('touchSession', { id, seenAt: now }, { background: true })
    // A disk that refuses shows in the service's health; the page goes on.
    written.catch(() => {}).finally(() => this.#touching.delete(id))
  }

  #hash(token: string): Buffer {
    return this.#options.hasher.hash('session', token)
  }
}

/** 256 random bits as 43 characters that may stand in a cookie and in an address. */
export const newToken = (random: RandomBytes): string =>
  Buffer.from(random(TOKEN_BYTES)).toString('base64url')
