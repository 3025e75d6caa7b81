import type { AccountId } from '../accounts/store.ts'
import type { Addressed } from '../addresses/names.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import type { EventReader } from '../db/events.ts'
import type { Operations } from '../db/subject.ts'
import { missingProblem, type QrOptions, sizeProblem } from '../draw/options.ts'
import { joinPage } from '../draw/pdf.ts'
import { toSvgPage } from '../draw/picture.ts'
import { type LeftOut, MISSING_MAX, PAPERS, type Sheet } from '../draw/sheet.ts'
import { AppError, retryAfter } from '../errors.ts'
import { type Client, clientIp, networkOf } from '../hot/client-address.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import type { Log } from '../lib/log.ts'
import type { Rate } from '../lib/rate-gate.ts'
import { messageOf, type Thread } from '../lib/thread.ts'
import type { links } from '../links/subject.ts'
import { contentOf } from './content.ts'
import { costOf, partsOf } from './costs.ts'
import { QrFiles } from './files.ts'
import type { CheckedLogo, ReadabilityChecks, Trial } from './readability.ts'
import type { RenderCommand, Renderer, StoredLogo } from './renderer.ts'
import type { qrSettings } from './store.ts'

/** Codes whose images wait. Images of further codes are rendered on demand. */
const WAITING_MAX = 100_000
/** Images per batch: bounds how long a requested image waits behind it, to about 5 ms. */
const BATCH = 4
/** After a creation within this time, one batch per pause: disk and CPU serve creations first. */
const PAUSE_MS = 100

/** More than a batch takes: background work yields to others. */
const STORED_COST = 10
/** Cost of all drawing that waits: about four seconds. */
const DRAWING_MAX = 8192
/** The thread has several small drawings at hand, or one large one. */
const DRAWN_AT_ONCE = { atOnce: 8, costAtOnce: 16 }
/** Accounts with files for print get half of the thread's time together, after 250 ms of it. */
const PRINTS: Rate = { burst: 500, everyMs: 1 }
/** Cost of the largest image of an account that is no file for print. */
const IMAGE_COST_MAX = 40
/** Cost of the end of a page of a PDF, and of the file. */
const PAGE_COST = 40
/** Checks that wait. */
const CHECKS_MAX = 512

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

/** A signed-in account, or another client. */
type Requester = AccountId | Client

const newQueue = (jobsMax: number, more: Partial<Rate> & Partial<typeof DRAWN_AT_ONCE> = {}) =>
  new FairQueue({ ...more, jobsMax, full: () => new AppError('overloaded', '', retryAfter(5)) })

/** Image of each code: rendered by the QR thread, stored as a file, rendered again if missing. */
export class QrImages {
  readonly #options: QrImagesOptions
  readonly #files: QrFiles
  /** All work of the QR thread but removals, by account, or by address and network. */
  readonly #drawing = newQueue(DRAWING_MAX, DRAWN_AT_ONCE)
  /** Parts of sheets, images of a ZIP and large images of accounts, before `#drawing`. */
  readonly #prints = newQueue(DRAWING_MAX, PRINTS)
  /** One sheet of an account at a time, because it is in memory until it is complete. */
  readonly #sheets = new FairQueue({ atOnce: 'keys' })
  readonly #checks = newQueue(CHECKS_MAX)
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

  /** Stores the image of a link. `find` runs when it is drawn; throws if the link is gone. */
  create(find: () => Addressed, client: Client): Promise<Uint8Array<ArrayBuffer>> {
    const { renderer } = this.#options
    return this.#draw(client, 1, () => renderer.call('store', this.#imageOf(find())))
  }

  /**
   * `address`: another one of the link. `isPrint`: one of many for an account. Throws AppError: 400
   * if the image is too small for its modules, if the account of the code has no logo, or if the
   * address cannot be in capitals; 503 if too many wait.
   */
  async render(
    link: Addressed,
    options: QrOptions,
    by: Requester,
    { address, isPrint }: { address?: string; isPrint?: boolean } = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    return this.#render(this.#command(link, options, address), by, isPrint)
  }

  /** An image of any text, or of an address with options. It is not stored. */
  renderText(address: string, options: QrOptions, by: AccountId): Promise<Uint8Array<ArrayBuffer>> {
    const text = contentOf(address, options)
    return this.#render({ text, address, options, logo: this.#logoOf(options, by) }, by)
  }

  /** For one ZIP of an account at a time: throws 503 during another one. */
  holdZip(accountId: AccountId): Disposable {
    if (this.#zips.has(accountId)) throw new AppError('overloaded', '', retryAfter(5))
    this.#zips.add(accountId)
    return { [Symbol.dispose]: () => this.#zips.delete(accountId) }
  }

  /** A page of a print sheet as an SVG. */
  sheetSvg(sheet: Sheet, accountId: AccountId): Promise<Uint8Array<ArrayBuffer>> {
    return this.#sheets.run(accountId, async () =>
      toSvgPage(PAPERS[sheet.grid.paper], await this.#drawParts(sheet, accountId, 'svg')),
    )
  }

  /** All pages of a print sheet, of one paper and with the same options. */
  sheetPdf(sheets: readonly Sheet[], accountId: AccountId): Promise<Uint8Array<ArrayBuffer>> {
    const [first] = sheets
    assert(first, 'a sheet has a page')
    const { paper } = first.grid
    return this.#sheets.run(accountId, async () => {
      const drawings: Uint8Array[] = []
      for (const sheet of sheets) {
        const parts = await this.#drawParts(sheet, accountId, 'pdf')
        const join = () => joinPage(PAPERS[paper], parts)
        drawings.push(await this.#prints.run(accountId, join, undefined, { cost: PAGE_COST }))
      }
      const file = { paper, drawings, logo: this.#logoOf(first.options, accountId) }
      const write = () => this.#options.renderer.call('sheetPdf', file)
      return this.#draw(accountId, PAGE_COST, write, true)
    })
  }

  /** What the labels lack. To find out takes about 0.1 ms for each. */
  async findLeftOut(sheets: readonly Sheet[], accountId: AccountId): Promise<LeftOut> {
    const all: LeftOut = { withoutRoom: [], undrawn: [], missing: [] }
    for (const sheet of sheets) {
      const find = () => this.#options.renderer.call('findLeftOut', sheet)
      const cost = Math.ceil(sheet.labels.length / 5)
      const left = await this.#draw(accountId, cost, find)
      all.withoutRoom.push(...left.withoutRoom)
      all.undrawn.push(...left.undrawn)
      all.missing = [...new Set([...all.missing, ...left.missing])].slice(0, MISSING_MAX)
    }
    return all
  }

  /** What of a text no font of the service has: at most `MISSING_MAX` characters. */
  findMissing(text: string, accountId: AccountId): Promise<string[]> {
    if (/^[ -~]*$/.test(text)) return Promise.resolve([])
    const find = () => this.#options.renderer.call('findMissing', { text })
    return this.#draw(accountId, 1, find)
  }

  /** Other drawing comes between the parts. */
  async #drawParts(sheet: Sheet, accountId: AccountId, format: 'svg' | 'pdf') {
    const logo = this.#logoOf(sheet.options, accountId)
    const drawn: Uint8Array[] = []
    for (const [at, { cost, ...part }] of partsOf(sheet, format).entries()) {
      const command = { sheet: part, logo, format, isFirst: at === 0 }
      const draw = () => this.#options.renderer.call('sheetPart', command)
      drawn.push(await this.#draw(accountId, cost, draw, true))
    }
    return drawn
  }

  /** Checks an uploaded logo. */
  checkLogo(bytes: Uint8Array, of: CheckOwner): Promise<CheckedLogo> {
    return this.#check(of, (thread, text) => thread.call('checkLogo', { bytes, text }))
  }

  /** Whether a decoder reads codes with these options. */
  isReadable(trial: Omit<Trial, 'text'>, of: CheckOwner): Promise<boolean> {
    return this.#check(of, (thread, text) => thread.call('isReadable', { ...trial, text }))
  }

  /** Stores the images of links in the background, if they still exist. */
  async remake(codes: readonly Code[]): Promise<void> {
    const { renderer, data } = this.#options
    for (const code of codes) {
      await this.#store(async () => {
        // In the tick of the call: an image of a code deleted meanwhile would stay forever.
        const link = data.links.findByCode(code)
        if (link) await renderer.call('store', this.#imageOf(link))
      })
    }
  }

  /** Finishes what has begun and pending removals: missing images are rendered on demand. */
  close(): Promise<void> {
    this.#waiting.clear()
    return this.#options.renderer.close()
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

  /** `isPrint`: a file for print, or a part of one. Only accounts have them. */
  #draw<Result>(
    by: Requester,
    cost: number,
    work: () => Promise<Result>,
    isPrint = cost > IMAGE_COST_MAX,
  ): Promise<Result> {
    const isAccount = typeof by === 'number'
    const key = isAccount ? by : clientIp(by)
    const group = typeof key === 'number' ? key : networkOf(key)
    const draw = () => this.#drawing.run(key, work, undefined, { group, cost })
    return isPrint && isAccount ? this.#prints.run(by, draw, undefined, { cost }) : draw()
  }

  #store(work: () => Promise<void>): Promise<void> {
    return this.#drawing.run('stored', work, undefined, { cost: STORED_COST })
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

  async #render(
    command: RenderCommand,
    by: Requester,
    isPrint?: boolean,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const render = () => this.#options.renderer.call('render', command)
    const rendered = await this.#draw(by, costOf(command.options), render, isPrint)
    if ('image' in rendered) return rendered.image
    if ('missing' in rendered) {
      throw new AppError('invalid_value', missingProblem(rendered.missing))
    }
    throw new AppError('invalid_value', sizeProblem(rendered.sizeMin))
  }

  async #renderWaiting(): Promise<void> {
    const { renderer, log } = this.#options
    this.#isRendering = true
    while (this.#waiting.size > 0) {
      const store = () => {
        // In the tick of the call, as in `remake`.
        const links = this.#waiting.values().take(BATCH).toArray()
        for (const { code } of links) this.#waiting.delete(code)
        const images = links.map((link) => this.#imageOf(link))
        return renderer.call('storeAll', images)
      }
      const reason = await this.#store(store).catch(messageOf)
      if (reason) log.debug('qr.not_prepared', { reason })
      // After a refusal too: others draw.
      if (reason || performance.now() - this.#latestMs < PAUSE_MS) await Bun.sleep(PAUSE_MS)
    }
    this.#isRendering = false
  }
}

/**
 * Stores images of new links. Those of an import are created on request: it would keep the thread
 * busy for minutes. The next request stores an image of another address.
 */
export const imageReader =
  (images: Pick<QrImages, 'prepare' | 'remove'>): EventReader =>
  (events) => {
    for (const event of events) {
      if (event.what !== 'link') continue
      if (event.kind === 'created' && !event.isImported) images.prepare(event)
      if (event.kind === 'deleted' || event.changed.includes('domain')) images.remove(event.code)
    }
  }
