import { AppError, retryAfter } from '../errors.ts'
import { SECOND } from '../lib/clock.ts'
import { FairQueue, type Time } from '../lib/fair-queue.ts'
import type { Rate } from '../lib/rate-gate.ts'
import type { Thread } from '../lib/thread.ts'

/**
 * Argon2id with the minimum of OWASP's Password Storage Cheat Sheet: 19 MiB, two passes, one lane.
 * Its stronger settings take three times the memory and time for a sign-in, on a machine whose two
 * cores also serve the redirects.
 */
const ARGON2ID = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

/** Runs on the password thread. A call takes about 25 ms of CPU. */
export const passwordFunctions = {
  hash: (password: string): string => Bun.password.hashSync(password, ARGON2ID),
  verify: ({ password, hash }: { password: string; hash: string }): boolean =>
    hash.startsWith('$2')
      ? Bun.password.verifySync(Buffer.from(password).subarray(0, BCRYPT_BYTES_MAX), hash)
      : Bun.password.verifySync(password, hash),
}

/** bcrypt ignores further bytes. Bun would hash a longer password; other programs do not. */
const BCRYPT_BYTES_MAX = 72

export type PasswordFunctions = typeof passwordFunctions

/** Characters. Longer passwords are refused when they are chosen: see credentials.ts. */
export const PASSWORD_MAX_LENGTH = 128
/**
 * UTF-16 units that are normalized at most: each character of the longest password in up to four
 * pieces of two units. Normalizing a mebibyte of combining marks takes minutes.
 */
const NORMALIZED_MAX_LENGTH = 8 * PASSWORD_MAX_LENGTH
/** Passwords waiting in each queue. Beyond this, `busy` asks the client to try again. */
const WAITING_MAX = 128
/** More than a full queue of links from each network once: then one with several is displaced. */
const NETWORKS_WAITING_MAX = 5 * WAITING_MAX
/**
 * A team signs in at once. A flood, or an attacker who guesses, gets about a quarter of a core: ten
 * passwords a second of about 25 ms each. The rest is left to redirects.
 */
const RATE: Rate = { burst: 10, everyMs: 100 }
/** A hash of bcrypt takes ten times the CPU. */
const IMPORTED_RATE: Rate = { burst: 1, everyMs: 1000 }
/** Approximate time to serve a full queue. */
const RETRY_AFTER_SECONDS = Math.ceil((WAITING_MAX * RATE.everyMs) / SECOND)

/** Verified against where no hash is stored, so that an unknown account takes the same time. */
const DUMMY_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$NbLf34x3aG9Z+8XjY8bSAY4qu0EL4yIutOIjPq1NIII' +
  '$kqk9IsHzbH6wSlX0Rg74L1j0VLDnxexcbYQYbbY2MCI'
/** Verified in place of a text that is too long to be a password. */
const DUMMY_PASSWORD = 'nobody'

/**
 * Makes composed and decomposed letters the same password (RFC 8265, OpaqueString). A text that is
 * too long to be a password stays as it is.
 */
export const normalizePassword = (password: string): string =>
  password.length <= NORMALIZED_MAX_LENGTH ? password.normalize('NFC') : password

interface PasswordsOptions {
  /** Called at the first use, and at the next use after the thread has ended. */
  start: () => Promise<Thread<PasswordFunctions>>
  /** Clock of the rate. Default: the machine's own. */
  time?: Time
}

/**
 * The requester of a hash or a verification. Each queue is served at its own rate, and the
 * keys of one queue in rotation:
 * - `anonymous`, by network: a browser without a trusted-device token.
 * - `trusted`, by account: inside a session, or a browser that has signed in to the account before.
 * - `oneTimeLink`, by link: a valid link of a set-up, an invitation or a reset.
 * - `visitor`, by network and link: the password of a link.
 * - `importedLink`, by network and link: the same, for a hash of bcrypt.
 * - `linkOwner`, by account: a new password of a link.
 */
export interface Requester {
  queue: 'anonymous' | 'trusted' | 'oneTimeLink' | 'visitor' | 'importedLink' | 'linkOwner'
  key: string
  /** Whose password it is. */
  link?: string
}

export type PasswordHashing = Pick<Passwords, 'hash'>

/**
 * Hooks around one verification. No other one of its queue runs between them, so the result of an
 * attempt counts for all attempts that wait behind it.
 */
export interface VerifyHooks {
  /** Runs when the password is next in its queue. A refused attempt throws, and takes no time. */
  before: () => void
  after: (fits: boolean) => void
}

/**
 * Hashes and verifies passwords on a thread of its own, one at a time per queue and ten a second:
 * CPU and memory stay bounded under a login flood (decision 014). Throws `busy` when too many wait.
 */
export class Passwords {
  readonly #start: () => Promise<Thread<PasswordFunctions>>
  readonly #queues: Readonly<Record<Requester['queue'], FairQueue>>
  /** One password of a network at a time goes on to the queue of its link. */
  readonly #networks: FairQueue
  #thread: Promise<Thread<PasswordFunctions>> | undefined
  #closed: Promise<void> | undefined

  constructor({ start, time }: PasswordsOptions) {
    this.#start = start
    const queue = (rate = RATE) =>
      new FairQueue({ ...rate, jobsMax: WAITING_MAX, full: busy, time })
    this.#queues = {
      anonymous: queue(),
      trusted: queue(),
      oneTimeLink: queue(),
      visitor: queue(),
      importedLink: queue(IMPORTED_RATE),
      linkOwner: queue(),
    }
    this.#networks = new FairQueue({ atOnce: 'keys', jobsMax: NETWORKS_WAITING_MAX, full: busy })
  }

  /**
   * Links are served in rotation, and so are the networks that ask: many networks that guess at one
   * link delay no other link, and one network that guesses at many links delays no other network.
   */
  #run<Result>(
    { queue, key, link }: Requester,
    work: () => Promise<Result>,
    admit?: () => void,
  ): Promise<Result> {
    const run = () => this.#queues[queue].run(link ?? key, work, admit)
    return link === undefined ? run() : this.#networks.run(`${queue} ${key}`, run)
  }

  hash(password: string, requester: Requester): Promise<string> {
    return this.#run(requester, async () =>
      (await this.#open()).call('hash', normalizePassword(password)),
    )
  }

  /** Whether the password fits. Always false without a stored hash, after the same work. */
  verify(
    password: string,
    hash: string | null | undefined,
    requester: Requester,
    hooks?: VerifyHooks,
  ): Promise<boolean> {
    const work = async () => {
      const thread = await this.#open()
      const canFit = typeof hash === 'string' && password.length <= NORMALIZED_MAX_LENGTH
      const input = canFit
        ? { password: normalizePassword(password), hash }
        : { password: DUMMY_PASSWORD, hash: DUMMY_HASH }
      const fits = (await thread.call('verify', input)) && canFit
      hooks?.after(fits)
      return fits
    }
    return this.#run(requester, work, hooks?.before)
  }

  /** Finishes the work in progress, and refuses waiting and later calls with `stopping`. */
  close(): Promise<void> {
    this.#closed ??= this.#end()
    return this.#closed
  }

  async #end(): Promise<void> {
    for (const queue of Object.values(this.#queues)) queue.close()
    await (await this.#thread?.catch(() => undefined))?.close()
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

const busy = () => new AppError('busy', '', retryAfter(RETRY_AFTER_SECONDS))
