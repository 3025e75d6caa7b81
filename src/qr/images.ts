import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { ByteBudget, type Owner } from '../http/byte-budget.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import { messageOf, type Thread } from '../lib/thread.ts'
import type { PublicUrls } from '../links/link.ts'
import type { LinkReads } from '../links/read.ts'
import type { CodeImages } from '../links/writer.ts'
import { QrFiles } from './files.ts'
import type { QrOptions } from './options.ts'
import type { CheckedLogo, Trial } from './readability.ts'
import type { RenderCommand, Renderer } from './renderer.ts'
import type { QrStore } from './store.ts'

/** Codes whose images wait. Images of further codes are rendered on demand. */
const WAITING_MAX = 100_000
/** Images per batch: bounds how long a requested image waits behind it, to about 5 ms. */
const BATCH = 4
/** After a creation within this time, one batch per pause: disk and CPU serve creations first. */
const PAUSE_MS = 100

/** Maximum number of images of one `renderMany`. */
const MANY_MAX = 50
/**
 * Pixels of images with a logo that are being rendered, at three bytes each: four of the largest,
 * two of them for one client. They take ten times as long as images without a logo.
 */
const LOGO_BYTES_MAX = 48 * 1024 * 1024
const LOGO_SHARE_MAX = LOGO_BYTES_MAX / 2

const LONGEST_CODE = 'QWERTYUIOP0123456789' as Code

interface QrImagesOptions {
  renderer: Pick<Thread<Renderer>, 'call' | 'close'>
  dir: string
  addresses: PublicUrls
  reads: Pick<LinkReads, 'findByCode'>
  store: Pick<QrStore, 'findLogo'>
  log: Log
}

interface CodeImage {
  code: Code
  image: Uint8Array<ArrayBuffer>
}

/** Image of each code: rendered by the QR thread, stored as a file, rendered again if missing. */
export class QrImages implements CodeImages {
  readonly #options: QrImagesOptions
  readonly #files: QrFiles
  readonly #logoBytes = new ByteBudget(LOGO_BYTES_MAX)
  /** Accounts with a `renderMany` or a check in progress. */
  readonly #busy = new Set<AccountId>()
  /** Codes in the order of creation. */
  readonly #waiting = new Set<Code>()
  #isRendering = false
  /** When the last code was created. */
  #latestMs = 0

  constructor(options: QrImagesOptions) {
    this.#options = options
    this.#files = new QrFiles(options.dir)
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
    const { renderer, log } = this.#options
    this.#waiting.delete(code)
    renderer.call('remove', { code }, { background: true }).catch((error: unknown) => {
      log.warn('qr.not_removed', { code, reason: messageOf(error) })
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
    return this.#options.renderer.call('store', this.#imageOf(code))
  }

  /**
   * `client`: its images with a logo are limited. `text`: another address of the code. Throws
   * AppError: 400 if the image is too small for its modules, or if the account of the code has no
   * logo; 503 while too many images with a logo are rendered.
   */
  async render(
    code: Code,
    options: QrOptions,
    client: Owner,
    text = this.#options.addresses.short(code),
  ): Promise<Uint8Array<ArrayBuffer>> {
    using pixels = this.#logoBytes.hold({ owner: client, shareMax: LOGO_SHARE_MAX })
    if (options.logo) pixels.take(3 * options.size ** 2)
    return await this.#render({ ...this.#command(code, options), text }, false)
  }

  /** An image of any text. It is not stored. */
  renderText(text: string, options: QrOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#render({ text, options }, false)
  }

  /**
   * Images of up to `MANY_MAX` codes of an account, one after the other whenever no other image is
   * requested. Throws what `render` throws, and 503 during another call or check for the account.
   */
  renderMany(
    codes: readonly Code[],
    options: QrOptions,
    accountId: AccountId,
  ): Promise<CodeImage[]> {
    assert(codes.length <= MANY_MAX, 'the caller limits the codes')
    return this.#alone(accountId, async () => {
      const images: CodeImage[] = []
      for (const code of codes) {
        images.push({ code, image: await this.#render(this.#command(code, options), true) })
      }
      return images
    })
  }

  /** Checks an uploaded logo. Throws 503 during another check or `renderMany` of the account. */
  checkLogo(accountId: AccountId, bytes: Uint8Array): Promise<CheckedLogo> {
    const text = this.#options.addresses.short(LONGEST_CODE)
    return this.#alone(accountId, () => this.#options.renderer.call('checkLogo', { bytes, text }))
  }

  /** Whether a decoder reads codes with these options. Throws like `checkLogo`. */
  isReadable(accountId: AccountId, trial: Omit<Trial, 'text'>): Promise<boolean> {
    const text = this.#options.addresses.short(LONGEST_CODE)
    return this.#alone(accountId, () =>
      this.#options.renderer.call('isReadable', { ...trial, text }),
    )
  }

  /** Stores the images of many codes in the background. Resolves once all are stored. */
  async remake(codes: readonly Code[]): Promise<void> {
    const { renderer } = this.#options
    // One call per image, so that a requested image waits behind one of them only.
    await Promise.all(
      codes.map((code) => renderer.call('store', this.#imageOf(code), { background: true })),
    )
  }

  /** Finishes pending removals and drops queued renders: missing images are rendered on demand. */
  close(): Promise<void> {
    this.#waiting.clear()
    return this.#options.renderer.close({ drop: ['store', 'storeAll'] })
  }

  async #alone<Result>(accountId: AccountId, work: () => Promise<Result>): Promise<Result> {
    if (this.#busy.has(accountId)) {
      throw new AppError('overloaded', '', { headers: { 'retry-after': '5' } })
    }
    this.#busy.add(accountId)
    try {
      return await work()
    } finally {
      this.#busy.delete(accountId)
    }
  }

  /** The argument of `store` and `storeAll` for a code. */
  #imageOf(code: Code) {
    return { code, text: this.#options.addresses.short(code) }
  }

  #command(code: Code, options: QrOptions): RenderCommand {
    const { addresses, reads, store } = this.#options
    const command = { text: addresses.short(code), options }
    if (!options.logo) return command
    const account = reads.findByCode(code)?.accountId
    const logo = account === undefined ? undefined : store.findLogo(account)
    if (!logo) throw new AppError('invalid_value', 'Invalid logo: the account has none')
    return { ...command, logo }
  }

  async #render(command: RenderCommand, background: boolean): Promise<Uint8Array<ArrayBuffer>> {
    const rendered = await this.#options.renderer.call('render', command, { background })
    if ('image' in rendered) return rendered.image
    const message = `Invalid size: must be at least ${rendered.sizeMin} for these options`
    throw new AppError('invalid_value', message)
  }

  async #renderWaiting(): Promise<void> {
    const { renderer, log } = this.#options
    this.#isRendering = true
    while (this.#waiting.size > 0) {
      const codes = this.#waiting.values().take(BATCH).toArray()
      for (const code of codes) this.#waiting.delete(code)
      const images = codes.map((code) => this.#imageOf(code))
      await renderer.call('storeAll', images, { background: true }).catch((error: unknown) => {
        log.debug('qr.not_prepared', { codes: codes.length, reason: messageOf(error) })
      })
      if (performance.now() - this.#latestMs < PAUSE_MS) await Bun.sleep(PAUSE_MS)
    }
    this.#isRendering = false
  }
}
