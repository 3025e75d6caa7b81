import { QrFiles } from './files.ts'
import { parseQrOptions, type QrOptions } from './options.ts'
import { renderQr } from './render.ts'

/** What the stored image of every code looks like: the spec's defaults. */
const STORED = parseQrOptions({})

export interface RendererSettings {
  /** The folder of the stored images. */
  dir: string
}

export interface ImageOrder {
  code: string
  /** The short URL. */
  text: string
}

/** Runs on the QR thread, the only one that writes images. */
export function renderer({ dir }: RendererSettings) {
  const files = new QrFiles({ dir })
  // Old images go in the background; what is left of them is tried again at the next start.
  files.open().catch(() => {})

  /** Returns the image even when the disk refuses: it can still be served. */
  function store({ code, text }: ImageOrder): Uint8Array<ArrayBuffer> {
    const image = renderQr(text, STORED)
    try {
      files.write(code, image)
    } catch {
      // Made again when it is asked for.
    }
    return image
  }

  return {
    render({ text, options }: { text: string; options: QrOptions }): Uint8Array<ArrayBuffer> {
      return renderQr(text, options)
    },

    /** Stores the image of a code and returns it. */
    store,

    /** Stores the images of codes that nobody has asked for yet. */
    storeAll(orders: readonly ImageOrder[]): void {
      for (const order of orders) store(order)
    },

    remove({ code }: { code: string }): void {
      files.remove(code)
    },
  }
}

export type Renderer = ReturnType<typeof renderer>
