import { QrFiles } from './files.ts'
import { parseQrOptions, type QrOptions } from './options.ts'
import { renderQr } from './render.ts'

/** Options of every stored image: the spec's defaults. */
const STORED = parseQrOptions({})

export interface RendererSettings {
  /** The folder of the stored images. */
  dir: string
}

interface StoredImage {
  code: string
  /** The short URL. */
  text: string
}

/** Runs on the QR thread, the only one that writes images. */
export function renderer({ dir }: RendererSettings) {
  const files = new QrFiles({ dir })
  // Retired images are deleted in the background. After an error, the next start retries.
  files.open().catch(() => {})

  /** Returns the image even if the disk refuses: it can still be served. */
  function store({ code, text }: StoredImage): Uint8Array<ArrayBuffer> {
    const image = renderQr(text, STORED)
    try {
      files.write(code, image)
    } catch {
      // Rendered again on demand.
    }
    return image
  }

  return {
    render({ text, options }: { text: string; options: QrOptions }): Uint8Array<ArrayBuffer> {
      return renderQr(text, options)
    },

    /** Stores the image of a code and returns it. */
    store,

    /** Stores images of codes in one call, and returns none of them. */
    storeAll(images: readonly StoredImage[]): void {
      for (const image of images) store(image)
    },

    remove({ code }: { code: string }): void {
      files.remove(code)
    },
  }
}

export type Renderer = ReturnType<typeof renderer>
