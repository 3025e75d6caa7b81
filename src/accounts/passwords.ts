import { AppError } from '../errors.ts'
import { SECOND } from '../lib/clock.ts'
import { FairQueue, type Pace, type Time } from '../lib/fair-queue.ts'
import type { Thread } from '../lib/thread.ts'
import list from './common-passwords.txt' with { type: 'text' }
import { findWeakness } from './guessable-passwords.ts'
import type { PasswordFunctions } from './password-hash.ts'

export const PASSWORD_MIN_LENGTH = 8
const PASSWORD_MAX_LENGTH = 128
/**
 * UTF-16 units of the longest password that can fit: each character in up to four pieces. Longer
 * text is not even put in composed form, which takes minutes for a mebibyte of combining marks.
 */
const SENT_MAX_LENGTH = 8 * PASSWORD_MAX_LENGTH
/** Passwords waiting in each queue; beyond this, the answer is to try again. */
const WAITING_MAX = 128
/**
 * A team comes in at once. A crowd, or somebody who guesses, takes about a quarter of a core, at
 * some 25 ms a password, and leaves the rest to redirects.
 */
const PACE: Pace = { burst: 10, everyMs: 100 }
/** What the wait of a full queue takes, about. */
const RETRY_AFTER_SECONDS = Math.ceil((WAITING_MAX * PACE.everyMs) / SECOND)

/** What a password is held against where there is none: as costly to verify as all others. */
const NOBODYS_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$NbLf34x3aG9Z+8XjY8bSAY4qu0EL4yIutOIjPq1NIII' +
  '$kqk9IsHzbH6wSlX0Rg74L1j0VLDnxexcbYQYbbY2MCI'

/** What stands in for a password that can fit nothing. */
const NOBODYS_PASSWORD = 'nobody'

const COMMON: ReadonlySet<string> = new Set(
  list.split('\n').filter((line) => line !== '' && !line.startsWith('# ')),
)

/**
 * What is wrong with a new password, for the person who chose it; undefined if nothing is. `email`
 * is the account's; empty where it is not known.
 */
export function judgePassword(password: string, email = ''): string | undefined {
  const length = [...password].length
  if (length < PASSWORD_MIN_LENGTH) return `Use at least ${PASSWORD_MIN_LENGTH} characters.`
  if (length > PASSWORD_MAX_LENGTH) return `Use at most ${PASSWORD_MAX_LENGTH} characters.`
  if (COMMON.has(password.toLowerCase())) {
    return 'This is one of the most common passwords, and the first that others would try.'
  }
  return findWeakness(password, email)
}

/** The same password however it was typed: in composed form (RFC 8265, OpaqueString). */
const normalized = (password: string) => password.normalize('NFC')

interface PasswordsOptions {
  /** Called at the first use, and again at the next one should the thread have ended. */
  start: () => Promise<Thread<PasswordFunctions>>
  /** What the pace is kept by. Default: the machine's own. */
  time?: Time
}

/**
 * On whose behalf a password is hashed or verified. The queues are served apart, each at the same
 * pace, and the keys of one queue in turn:
 * - `anonymous`, by network: a browser that is not known.
 * - `known`, by account: inside a session, or a browser that has signed in to the account before.
 * - `oneTimeLink`, by link: a valid link of a set-up, an invitation or a reset.
 */
export interface Requester {
  queue: 'anonymous' | 'known' | 'oneTimeLink'
  key: string
}

interface VerifyOptions {
  before?: () => void
  after?: (fits: boolean) => void
}

/**
 * Hashes and verifies on a thread of its own, one password at a time and ten a second: CPU and
 * memory stay bounded under a login flood. Throws `busy` when too many wait.
 */
export class Passwords {
  readonly #start: () => Promise<Thread<PasswordFunctions>>
  readonly #queues: Readonly<Record<Requester['queue'], FairQueue>>
  #thread: Promise<Thread<PasswordFunctions>> | undefined
  #closed: Promise<void> | undefined

  constructor({ start, time }: PasswordsOptions) {
    this.#start = start
    const queue = () => new FairQueue({ ...PACE, places: WAITING_MAX, full: busy, time })
    this.#queues = { anonymous: queue(), known: queue(), oneTimeLink: queue() }
  }

  hash(password: string, by: Requester): Promise<string> {
    return this.#run(by, (thread) => thread.call('hash', normalized(password)))
  }

  /**
   * Whether the password fits; never without a stored hash, which takes the same time. `before`
   * runs when the password is next, before the work, and may refuse it by throwing; `after` runs
   * before the next one. So what one attempt teaches counts for all behind it in the queue.
   */
  verify(
    password: string,
    hash: string | null | undefined,
    by: Requester,
    { before, after = () => {} }: VerifyOptions = {},
  ): Promise<boolean> {
    const work = async (thread: Thread<PasswordFunctions>) => {
      const canFit = typeof hash === 'string' && password.length <= SENT_MAX_LENGTH
      const order = canFit
        ? { password: normalized(password), hash }
        : { password: NOBODYS_PASSWORD, hash: NOBODYS_HASH }
      const fits = (await thread.call('verify', order)) && canFit
      after(fits)
      return fits
    }
    return this.#run(by, work, before)
  }

  /** Finishes the work under way; who still waits, and who comes, is refused. */
  close(): Promise<void> {
    this.#closed ??= this.#end()
    return this.#closed
  }

  async #end(): Promise<void> {
    for (const queue of Object.values(this.#queues)) queue.close()
    await (await this.#thread?.catch(() => undefined))?.close()
  }

  #run<Result>(
    { queue, key }: Requester,
    work: (thread: Thread<PasswordFunctions>) => Promise<Result>,
    before?: () => void,
  ): Promise<Result> {
    return this.#queues[queue].run(key, async () => work(await this.#open()), before)
  }

  async #open(): Promise<Thread<PasswordFunctions>> {
    const found = this.#thread
    let thread = await found?.catch(() => undefined)
    if (!this.#closed && (!thread || thread.isDead)) {
      // Another queue may have started one meanwhile.
      if (!this.#thread || this.#thread === found) this.#thread = this.#start()
      thread = await this.#thread
    }
    if (this.#closed || !thread) throw new AppError('stopping')
    return thread
  }
}

const busy = () =>
  new AppError('busy', '', { headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } })
