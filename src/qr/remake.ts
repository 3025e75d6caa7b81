import type { SettingStore, settings } from '../db/settings.ts'
import type { DataOf } from '../db/subject.ts'
import type { Log } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import type { links } from '../links/subject.ts'
import { retireImages } from './files.ts'
import type { QrImages } from './images.ts'

/** Setting: the BASE_URL that every stored image was rendered for. */
const NAME = 'qr_base_url'
/** Value of the setting while some images are missing. */
const UNFINISHED = 'unfinished'
/** Value of the setting before the first start after a restore. */
const RESTORED = 'restored'
/** Codes per chunk: bounds how long other background work waits behind it. */
const CHUNK = 100

/**
 * Stored images encode short URLs: after a change of BASE_URL the old ones are wrong. Removes them
 * before the service starts, and returns whether all must be rendered again.
 */
export function retireStaleImages(settings: SettingStore, dir: string, baseUrl: string): boolean {
  const found = settings.findByName(NAME)
  if (found === baseUrl) return false
  if (found === undefined) {
    settings.set(NAME, baseUrl)
    return false
  }
  // Until all are stored, the images may belong to different BASE_URLs.
  settings.set(NAME, UNFINISHED)
  retireImages(dir)
  return true
}

/** For a database that replaces another one: its first start renders every image again. */
export function remakeAtStart(settings: SettingStore): void {
  settings.set(NAME, RESTORED)
}

/** No service has started since a restore filled the data folder. */
export const isRestoredOnly = (settings: SettingStore): boolean =>
  settings.findByName(NAME) === RESTORED

interface RemakeDeps {
  images: QrImages
  data: DataOf<{ links: typeof links; settings: typeof settings }>
  baseUrl: string
  log: Log
}

/** Stores the image of every code in the background. A requested image is rendered at once. */
export class Remake {
  #stopped = false
  readonly #done: Promise<void>

  constructor(deps: RemakeDeps) {
    this.#done = this.#run(deps).catch((error: unknown) => {
      if (!this.#stopped) deps.log.warn('qr.remake_failed', { reason: messageOf(error) })
    })
  }

  /** Resolves once the current chunk is stored or dropped. */
  async close(): Promise<void> {
    this.#stopped = true
    await this.#done
  }

  async #run({ images, data, baseUrl, log }: RemakeDeps): Promise<void> {
    let last = 0
    let made = 0
    for (;;) {
      const links = await data.links.codesAfter({ id: last, limit: CHUNK })
      if (this.#stopped) return
      if (links.length === 0) {
        await data.settings.saveForHost({ name: NAME, value: baseUrl })
        log.info('qr.remade', { images: made })
        return
      }
      await images.remake(links.map(({ code }) => code))
      made += links.length
      last = links.at(-1)?.id ?? last
    }
  }
}
