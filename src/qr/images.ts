import type { Code } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import { messageOf, type Thread } from '../lib/thread.ts'
import type { CodeImages } from '../links/effects.ts'
import type { PublicUrls } from '../links/link.ts'
import { QrFiles } from './files.ts'
import type { QrOptions } from './options.ts'
import type { Renderer } from './renderer.ts'

/** Codes whose images wait. Images of further codes are rendered on demand. */
const WAITING_MAX = 100_000
/** Images per batch: bounds how long a requested image waits behind it, to about 5 ms. */
const BATCH = 4
/** After a creation within this time, one batch per pause: disk and CPU serve creations first. */
const PAUSE_MS = 100

interface QrImagesOptions {
  renderer: Pick<Thread<Renderer>, 'call' | 'close'>
  dir: string
  addresses: PublicUrls
  log: Log
}

/** Image of each code: rendered by the QR thread, stored as a file, rendered again if missing. */
export class QrImages implements CodeImages {
  readonly #renderer: QrImagesOptions['renderer']
  readonly #files: QrFiles
  readonly #addresses: PublicUrls
  readonly #log: Log
  /** In the order of creation. */
  readonly #waiting = new Set<Code>()
  #isRendering = false
  /** When the last code was created. */
  #latestMs = 0

  constructor({ renderer, dir, addresses, log }: QrImagesOptions) {
    this.#renderer = renderer
    this.#files = new QrFiles({ dir })
    this.#addresses = addresses
    this.#log = log
  }

  /** Stores the image of a new code in the background. If that fails, it is rendered on demand. */
  prepare(code: Code): void {
    if (this.#waiting.size >= WAITING_MAX) return
    this.#latestMs = performance.now()
    this.#waiting.add(code)
    if (!this.#isRendering) void this.#renderWaiting()
  }

  /** Runs after an unfinished `prepare` of the same code, so that no image outlives its code. */
  remove(code: Code): void {
    this.#waiting.delete(code)
    this.#renderer.call('remove', { code }, { background: true }).catch((error: unknown) => {
      this.#log.warn('qr.not_removed', { code, reason: messageOf(error) })
    })
  }

  /** The stored image of a code; undefined if there is none. */
  async find(code: Code): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = await Bun.file(this.#files.path(code))
      .bytes()
      .catch(() => undefined)
    return bytes?.length ? bytes : undefined
  }

  /** Stores the image of a code. The caller has checked in the same tick that the code exists. */
  create(code: Code): Promise<Uint8Array<ArrayBuffer>> {
    return this.#renderer.call('store', { code, text: this.#addresses.short(code) })
  }

  render(code: Code, options: QrOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#renderer.call('render', { text: this.#addresses.short(code), options })
  }

  /** An image of any text. It is not stored. */
  renderText(text: string, options: QrOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#renderer.call('render', { text, options })
  }

  /** Stores the images of many codes in the background. Resolves once all are stored. */
  async remake(codes: readonly Code[]): Promise<void> {
    // One call per image, so that a requested image waits behind one of them only.
    const images = codes.map((code) => ({ code, text: this.#addresses.short(code) }))
    await Promise.all(
      images.map((image) => this.#renderer.call('store', image, { background: true })),
    )
  }

  /** Finishes pending removals and drops queued renders: missing images are rendered on demand. */
  close(): Promise<void> {
    this.#waiting.clear()
    return this.#renderer.close({ drop: ['store', 'storeAll'] })
  }

  async #renderWaiting(): Promise<void> {
    this.#isRendering = true
    while (this.#waiting.size > 0) {
      const codes = this.#waiting.values().take(BATCH).toArray()
      for (const code of codes) this.#waiting.delete(code)
      await this.#storeAll(codes).catch((error: unknown) => {
        this.#log.debug('qr.not_prepared', { codes: codes.length, reason: messageOf(error) })
      })
      if (performance.now() - this.#latestMs < PAUSE_MS) await Bun.sleep(PAUSE_MS)
    }
    this.#isRendering = false
  }

  #storeAll(codes: readonly Code[]): Promise<void> {
    const images = codes.map((code) => ({ code, text: this.#addresses.short(code) }))
    return this.#renderer.call('storeAll', images, { background: true })
  }
}
