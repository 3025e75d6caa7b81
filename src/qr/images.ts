import type { AccountId } from '../accounts/store.ts'
import type { Addressed } from '../addresses/names.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import type { Operations } from '../db/subject.ts'
import { AppError, retryAfter } from '../errors.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import type { Log } from '../lib/log.ts'
import { messageOf, type Thread } from '../lib/thread.ts'
import type { Owner } from '../limits/shared-budget.ts'
import type { links } from '../links/subject.ts'
import type { CodeImages } from '../links/writer.ts'
import { contentOf } from './content.ts'
import { QrFiles } from './files.ts'
import { type QrOptions, sizeProblem } from './options.ts'
import type { CheckedLogo, ReadabilityChecks, Trial } from './readability.ts'
import type { RenderCommand, Renderer, StoredLogo } from './renderer.ts'
import type { Sheet } from './sheet.ts'
import type { qrSettings } from './store.ts'

/** Codes whose images wait. Images of further codes are rendered on demand. */
const WAITING_MAX = 100_000
/** Images per batch: bounds how long a requested image waits behind it, to about 5 ms. */
const BATCH = 4
/** After a creation within this time, one batch per pause: disk and CPU serve creations first. */
const PAUSE_MS = 100

/** Slow images, or checks, that wait. */
const QUEUE_MAX = 512

const LONGEST = 'QWERTYUIOP0123456789' as Code

type CheckThread = Pick<Thread<ReadabilityChecks>, 'call' | 'close'>

interface CheckOwner {
  accountId: AccountId
  /** Runs when the check is next; throws if the account has had too many. */
  admit?: () => void
}

interface QrImagesOptions {
  renderer: Pick<Thread<Renderer>, 'call' | 'close'>
  /** Starts a thread for one check, which takes up to a second. */
  startChecks: () => Promise<CheckThread>
  dir: string
  addresses: PublicUrls
  data: {
    links: Pick<Operations<typeof links>, 'findByCode'>
    qrSettings: Pick<Operations<typeof qrSettings>, 'findLogo'>
  }
  log: Log
}

type BatchCall<Result> = (
  renderer: QrImagesOptions['renderer'],
  call: { background: true },
) => Promise<Result>

const newQueue = () =>
  new FairQueue({
    jobsMax: QUEUE_MAX,
    full: () => new AppError('overloaded', '', retryAfter(5)),
  })

/** Image of each code: rendered by the QR thread, stored as a file, rendered again if missing. */
export class QrImages implements CodeImages {
  readonly #options: QrImagesOptions
  readonly #files: QrFiles
  /** Images with a logo, by client: they take ten times as long as others. */
  readonly #logoImages = newQueue()
  /** Images of many, sheets and checks, by account. */
  readonly #batches = newQueue()
  readonly #checks = newQueue()
  /** Accounts with a ZIP that is being sent. */
  readonly #zips = new Set<AccountId>()
  /** Links by their codes, in the order of creation. */
  readonly #waiting = new Map<Code, Addressed>()
  #isRendering = false
  /** When the last code was created. */
  #latestMs = 0

  constructor(options: QrImagesOptions) {
    this.#options = options
    this.#files = new QrFiles(options.dir)
  }

  /** Stores the image of a new code in the background. If that fails, it is rendered on demand. */
  prepare(link: Addressed): void {
    if (this.#waiting.size >= WAITING_MAX) return
    this.#latestMs = performance.now()
    this.#waiting.set(link.code, link)
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

  /** The stored image of a link; undefined if there is none. */
  async find({ code, domainId }: Addressed): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const domain = this.#options.addresses.namedHost(domainId)
    const bytes = await Bun.file(this.#files.path(code, domain))
      .bytes()
      .catch(() => undefined)
    return bytes?.length ? bytes : undefined
  }

  /** Stores the image of a link. The caller has checked in the same tick that it exists. */
  create(link: Addressed): Promise<Uint8Array<ArrayBuffer>> {
    return this.#options.renderer.call('store', this.#imageOf(link))
  }

  /**
   * Images with a logo are rendered one after the other, those of each `client` in turn. `address`:
   * another one of the link. Throws AppError: 400 if the image is too small for its modules, if the
   * account of the code has no logo, or if the address cannot be in capitals.
   */
  async render(
    link: Addressed,
    options: QrOptions,
    client: Owner,
    address?: string,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const command = this.#command(link, options, address)
    const render = () => this.#render(command, false)
    return options.logo ? this.#logoImages.run(client, render) : render()
  }

  /** An image of any text. It is not stored. */
  renderText(text: string, options: QrOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#render({ text, options }, false)
  }

  /**
   * One of many images for an account, whenever no other image is requested and by account in turn.
   * Throws what `render` throws.
   */
  renderOne(
    link: Addressed,
    options: QrOptions,
    accountId: AccountId,
    address: string,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const render = () => this.#render(this.#command(link, options, address), true)
    return this.#batches.run(accountId, render)
  }

  /** For one ZIP of an account at a time: throws 503 during another one. */
  holdZip(accountId: AccountId): Disposable {
    if (this.#zips.has(accountId)) throw new AppError('overloaded', '', retryAfter(5))
    this.#zips.add(accountId)
    return { [Symbol.dispose]: () => this.#zips.delete(accountId) }
  }

  /** A page of a print sheet as an SVG, in the same order as `renderOne`. */
  sheetSvg(sheet: Sheet, accountId: AccountId): Promise<string> {
    const command = { sheet, logo: this.#logoOf(sheet.options, accountId) }
    return this.#batch(accountId, (renderer, call) => renderer.call('sheetSvg', command, call))
  }

  /** All pages of a print sheet, of one paper and with the same options. */
  async sheetPdf(sheets: readonly Sheet[], accountId: AccountId): Promise<Uint8Array<ArrayBuffer>> {
    const [first] = sheets
    assert(first, 'a sheet has a page')
    const logo = this.#logoOf(first.options, accountId)
    const drawings: Uint8Array[] = []
    for (const sheet of sheets) {
      const command = { sheet, logo }
      const draw: BatchCall<Uint8Array> = (renderer, call) =>
        renderer.call('sheetDrawing', command, call)
      drawings.push(await this.#batch(accountId, draw))
    }
    const { paper } = first.grid
    return this.#batch(accountId, (renderer, call) =>
      renderer.call('sheetPdf', { paper, drawings, logo }, call),
    )
  }

  /** Checks an uploaded logo. */
  checkLogo(bytes: Uint8Array, of: CheckOwner): Promise<CheckedLogo> {
    return this.#check(of, (thread, text) => thread.call('checkLogo', { bytes, text }))
  }

  /** Whether a decoder reads codes with these options. */
  isReadable(trial: Omit<Trial, 'text'>, of: CheckOwner): Promise<boolean> {
    return this.#check(of, (thread, text) => thread.call('isReadable', { ...trial, text }))
  }

  /** Stores the images of many links in the background. Resolves once all are stored. */
  async remake(links: readonly Addressed[]): Promise<void> {
    const { renderer } = this.#options
    // One call per image, so that a requested image waits behind one of them only.
    await Promise.all(
      links.map((link) => renderer.call('store', this.#imageOf(link), { background: true })),
    )
  }

  /** Finishes pending removals and drops queued renders: missing images are rendered on demand. */
  close(): Promise<void> {
    this.#waiting.clear()
    return this.#options.renderer.close({ drop: ['store', 'storeAll'] })
  }

  /** Runs one check of all accounts at a time, on a thread that ends with it. */
  #check<Result>(
    { accountId, admit }: CheckOwner,
    check: (thread: CheckThread, text: string) => Promise<Result>,
  ): Promise<Result> {
    const work = async () => {
      const thread = await this.#options.startChecks()
      const { addresses } = this.#options
      try {
        return await check(
          thread,
          addresses.short({ code: LONGEST, domainId: addresses.primary.id }),
        )
      } finally {
        await thread.close()
      }
    }
    return this.#checks.run(accountId, work, admit)
  }

  #batch<Result>(accountId: AccountId, run: BatchCall<Result>): Promise<Result> {
    return this.#batches.run(accountId, () => run(this.#options.renderer, { background: true }))
  }

  #logoOf({ logo }: QrOptions, accountId: AccountId): StoredLogo | undefined {
    if (!logo) return undefined
    const found = this.#options.data.qrSettings.findLogo(accountId)
    if (!found) throw new AppError('invalid_value', 'Invalid logo: the account has none')
    return found
  }

  /** The argument of `store` and `storeAll` for a link. */
  #imageOf(link: Addressed) {
    const { addresses } = this.#options
    return {
      code: link.code,
      domain: addresses.namedHost(link.domainId),
      text: addresses.short(link),
    }
  }

  #command(link: Addressed, options: QrOptions, given?: string): RenderCommand {
    const { addresses, data } = this.#options
    const address = given ?? addresses.short(link)
    const command = { text: contentOf(address, options), address, options }
    if (!options.logo) return command
    const account = data.links.findByCode(link.code)?.accountId
    if (account === undefined) throw new AppError('code_not_found', link.code)
    return { ...command, logo: this.#logoOf(options, account) }
  }

  async #render(command: RenderCommand, background: boolean): Promise<Uint8Array<ArrayBuffer>> {
    const rendered = await this.#options.renderer.call('render', command, { background })
    if ('image' in rendered) return rendered.image
    throw new AppError('invalid_value', sizeProblem(rendered.sizeMin))
  }

  async #renderWaiting(): Promise<void> {
    const { renderer, log } = this.#options
    this.#isRendering = true
    while (this.#waiting.size > 0) {
      const links = this.#waiting.values().take(BATCH).toArray()
      for (const { code } of links) this.#waiting.delete(code)
      const images = links.map((link) => this.#imageOf(link))
      await renderer.call('storeAll', images, { background: true }).catch((error: unknown) => {
        log.debug('qr.not_prepared', { codes: links.length, reason: messageOf(error) })
      })
      if (performance.now() - this.#latestMs < PAUSE_MS) await Bun.sleep(PAUSE_MS)
    }
    this.#isRendering = false
  }
}
