import type { Code } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import { messageOf, type Thread } from '../lib/thread.ts'
import type { CodeImages } from '../links/effects.ts'
import type { PublicUrls } from '../links/link.ts'
import { QrFiles } from './files.ts'
import type { QrOptions } from './options.ts'
import type { Renderer } from './renderer.ts'

/** Codes whose images wait; those of further codes are made when they are asked for. */
const WAITING_MAX = 100_000
/** Images that one asked for meanwhile waits behind: about 5 ms. */
const MADE_AT_ONCE = 4
/** While creations follow this closely, a batch a pause: disk and processor are theirs. */
const PAUSE_MS = 100

interface QrImagesOptions {
  renderer: Pick<Thread<Renderer>, 'call' | 'close'>
  dir: string
  addresses: PublicUrls
  log: Log
}

/**
 * Each code's picture: made by the QR thread, stored as a file, made again whenever it is missing.
 */
export class QrImages implements CodeImages {
  readonly #renderer: QrImagesOptions['renderer']
  readonly #files: QrFiles
  readonly #addresses: PublicUrls
  readonly #log: Log
  /** In the order in which they came. */
  readonly #waiting = new Set<Code>()
  #isMaking = false
  #latestMs = 0

  constructor({ renderer, dir, addresses, log }: QrImagesOptions) {
    this.#renderer = renderer
    this.#files = new QrFiles({ dir })
    this.#addresses = addresses
    this.#log = log
  }

  /** Makes the stored image when there is nothing more urgent. Losing this order loses nothing. */
  prepare(code: Code): void {
    if (this.#waiting.size >= WAITING_MAX) return
    this.#latestMs = performance.now()
    this.#waiting.add(code)
    if (!this.#isMaking) void this.#makeWaiting()
  }

  /** Waits behind an unfinished `prepare` of the same code, so that no image outlives its code. */
  remove(code: Code): void {
    this.#waiting.delete(code)
    this.#renderer.call('remove', { code }, { background: true }).catch((error: unknown) => {
      this.#log.warn('qr.not_removed', { code, reason: messageOf(error) })
    })
  }

  /** The stored image of a code; undefined while there is none. */
  async find(code: Code): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = await Bun.file(this.#files.path(code))
      .bytes()
      .catch(() => undefined)
    return bytes?.length ? bytes : undefined
  }

  /** Makes the stored image of a code. The caller knows in this very turn that the code exists. */
  make(code: Code): Promise<Uint8Array<ArrayBuffer>> {
    return this.#renderer.call('store', { code, text: this.#addresses.short(code) })
  }

  render(code: Code, options: QrOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#renderer.call('render', { text: this.#addresses.short(code), options })
  }

  /** An image of a text that is no short link; nothing of it is stored. */
  renderText(text: string, options: QrOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#renderer.call('render', { text, options })
  }

  /** Stores the images of many codes, and waits for it: for work in the background. */
  async remake(codes: readonly Code[]): Promise<void> {
    const text = (code: Code) => this.#addresses.short(code)
    await Promise.all(
      codes.map((code) =>
        this.#renderer.call('store', { code, text: text(code) }, { background: true }),
      ),
    )
  }

  /** Removes what is to be removed. Images not made yet are made when they are asked for. */
  close(): Promise<void> {
    this.#waiting.clear()
    return this.#renderer.close({ drop: ['store', 'storeAll'] })
  }

  async #makeWaiting(): Promise<void> {
    this.#isMaking = true
    while (this.#waiting.size > 0) {
      const codes = this.#waiting.values().take(MADE_AT_ONCE).toArray()
      for (const code of codes) this.#waiting.delete(code)
      await this.#storeAll(codes).catch((error: unknown) => {
        this.#log.debug('qr.not_prepared', { codes: codes.length, reason: messageOf(error) })
      })
      if (performance.now() - this.#latestMs < PAUSE_MS) await Bun.sleep(PAUSE_MS)
    }
    this.#isMaking = false
  }

  #storeAll(codes: readonly Code[]): Promise<void> {
    const orders = codes.map((code) => ({ code, text: this.#addresses.short(code) }))
    return this.#renderer.call('storeAll', orders, { background: true })
  }
}
