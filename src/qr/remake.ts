import type { SettingStore, SettingWrites } from '../db/settings.ts'
import type { Log } from '../lib/log.ts'
import { type Caller, messageOf } from '../lib/thread.ts'
import type { LinkLists } from '../links/lists.ts'
import type { LinkReads } from '../links/read.ts'
import { QrFiles } from './files.ts'
import type { QrImages } from './images.ts'

/** The setting that says under which BASE_URL every stored image was made. */
const NAME = 'qr_base_url'
/** No address: images are still to be made. */
const UNFINISHED = 'unfinished'
/** Codes made at once: few, so that none of them waits long for the others. */
const CHUNK = 100

/**
 * Stored images encode short URLs: under another BASE_URL the old ones lead nowhere. Takes them
 * away, before the service starts, and says whether all must be made anew.
 */
export function retireStaleImages(settings: SettingStore, dir: string, baseUrl: string): boolean {
  const found = settings.find(NAME)
  if (found === baseUrl) return false
  if (found === undefined) {
    settings.set(NAME, baseUrl)
    return false
  }
  // Until all are made, the folder holds images of no one address.
  settings.set(NAME, UNFINISHED)
  // A failed deletion of the old images is tried again at the next start.
  new QrFiles({ dir }).retireAll().catch(() => {})
  return true
}

/** For a database that takes the place of another: its first start makes every image anew. */
export function remakeAtStart(settings: SettingStore): void {
  settings.set(NAME, UNFINISHED)
}

interface RemakeDeps {
  images: QrImages
  reads: LinkReads
  lists: Caller<LinkLists>
  writer: Caller<SettingWrites>
  baseUrl: string
  log: Log
}

/**
 * Makes the image of every code in the background. One that is asked for meanwhile is made at once.
 */
export class Remake {
  #stopped = false
  readonly #done: Promise<void>

  constructor(deps: RemakeDeps) {
    this.#done = this.#run(deps).catch((error: unknown) => {
      if (!this.#stopped) deps.log.warn('qr.remake_failed', { reason: messageOf(error) })
    })
  }

  /** Resolves once every image is made, or after `close`. */
  get done(): Promise<void> {
    return this.#done
  }

  /** Ends once the images under way are made, or dropped. */
  async close(): Promise<void> {
    this.#stopped = true
    await this.#done
  }

  async #run({ images, reads, lists, writer, baseUrl, log }: RemakeDeps): Promise<void> {
    let last = 0
    let made = 0
    for (;;) {
      const links = await lists.call('codesAfter', { id: last, limit: CHUNK })
      if (this.#stopped) return
      if (links.length === 0) {
        await writer.call('saveSetting', { name: NAME, value: baseUrl })
        log.info('qr.remade', { images: made })
        return
      }
      // Asked again in this turn: an image made for a code deleted meanwhile would stay for good.
      const codes = links.map(({ code }) => code).filter((code) => reads.findByCode(code))
      await images.remake(codes)
      made += links.length
      last = links.at(-1)?.id ?? last
    }
  }
}
