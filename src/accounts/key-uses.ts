import { MINUTE } from '../lib/clock.ts'
import type { Caller } from '../lib/thread.ts'
import type { AccountWrites } from './writes-store.ts'

export type KeyUseWrites = Pick<AccountWrites, 'noteKeyUses'>

/** Keys remembered at once; beyond this all are forgotten, which costs writes and nothing else. */
const KEYS_MAX = 10_000
/** How long noted uses gather before they are written together. */
const GATHER_MS = 1000

/**
 * When each API key was last used, written in the background, at most once a minute for each.
 * Stands on the redirect path: a note costs one look into a table.
 */
export class KeyUses {
  readonly #writer: Caller<KeyUseWrites>
  readonly #noted = new Map<number, number>()
  #waiting: { keyId: number; at: number }[] = []
  #timer: Timer | undefined

  constructor(writer: Caller<KeyUseWrites>) {
    this.#writer = writer
  }

  note(keyId: number, now: number): void {
    const last = this.#noted.get(keyId)
    if (last !== undefined && now - last < MINUTE) return
    if (this.#noted.size >= KEYS_MAX) this.#noted.clear()
    if (this.#waiting.length >= KEYS_MAX) return
    this.#noted.set(keyId, now)
    this.#waiting.push({ keyId, at: now })
    this.#timer ??= setTimeout(() => void this.#write(), GATHER_MS)
  }

  /** Writes what has gathered. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    const uses = this.#waiting
    if (uses.length === 0) return
    this.#waiting = []
    // Only a time on a page is lost, and the service's health shows a disk that refuses.
    await this.#writer.call('noteKeyUses', uses, { background: true }).catch(() => {})
  }
}
