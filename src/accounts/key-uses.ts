import type { Operations } from '../db/subject.ts'
import { MINUTE } from '../lib/clock.ts'
import type { keys } from './operations/keys.ts'

type KeyUseCalls = Pick<Operations<typeof keys>, 'noteUses'>

/** Keys remembered at once. Beyond this all are forgotten, which only costs more writes. */
const NOTED_MAX = 10_000
/** How long uses are collected before they are written together. */
const COLLECT_MS = 1000

/**
 * When each API key was last used, written in the background at most once a minute for each key.
 * HOT PATH: a redirect with a key calls `note`, which costs one Map lookup.
 */
export class KeyUses {
  readonly #keys: KeyUseCalls
  readonly #noted = new Map<number, number>()
  #waiting: { keyId: number; at: number }[] = []
  #timer: Timer | undefined

  constructor(data: { keys: KeyUseCalls }) {
    this.#keys = data.keys
  }

  note(keyId: number, now: number): void {
    const last = this.#noted.get(keyId)
    if (last !== undefined && now - last < MINUTE) return
    if (this.#noted.size >= NOTED_MAX) this.#noted.clear()
    if (this.#waiting.length >= NOTED_MAX) return
    this.#noted.set(keyId, now)
    this.#waiting.push({ keyId, at: now })
    this.#timer ??= setTimeout(() => void this.#write(), COLLECT_MS)
  }

  /** Writes the collected uses. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#write()
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    const uses = this.#waiting
    if (uses.length === 0) return
    this.#waiting = []
    // A failed write loses only a time on a page, and the service's health reports the disk.
    await this.#keys.noteUses(uses, { background: true }).catch(() => {})
  }
}
