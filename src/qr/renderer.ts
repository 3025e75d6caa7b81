import { LRUCache } from 'lru-cache'
import { type Logo, readPng } from '../draw/logo.ts'
import { parseQrOptions, type QrOptions } from '../draw/options.ts'
import { operatorsOf, toPdf } from '../draw/pdf.ts'
import { svgPictures } from '../draw/picture.ts'
import { SizeError } from '../draw/png.ts'
import { renderQr } from '../draw/render.ts'
import { layOutSheet, PAPERS, type Paper, type Sheet, textsWithoutRoom } from '../draw/sheet.ts'
import { withCaption } from './content.ts'
import { hasImageRoom, QrFiles, type StatFs } from './files.ts'

/** Options of every stored image: the spec's defaults. */
const STORED = parseQrOptions({})

export interface RendererSettings {
  /** The folder of the stored images. */
  dir: string
}

interface StoredImage {
  code: string
  /** The host of the link; null for the primary domain. */
  domain: string | null
  /** The short URL. */
  text: string
}

/** Decoded logos in memory, at most 1 MiB each. */
const LOGOS_MAX = 16

export interface StoredLogo {
  /** Identifies this version of the logo. */
  key: string
  png: Uint8Array
}

export interface RenderCommand {
  text: string
  /** For people, if it is another one. */
  address?: string
  options: QrOptions
  logo?: StoredLogo | undefined
}

/** `sizeMin`: the number of pixels that the PNG needs. */
export type Rendered = { image: Uint8Array<ArrayBuffer> } | { sizeMin: number }

interface PartCommand {
  /** A page, of which other parts have the other labels. */
  sheet: Sheet
  logo?: StoredLogo | undefined
  format: 'svg' | 'pdf'
  isFirst: boolean
}

interface SheetFile {
  paper: Paper
  /** One drawing for each page, from `joinPage`. */
  drawings: readonly Uint8Array[]
  logo?: StoredLogo | undefined
}

/** Runs on the QR thread, the only one that writes images. `statfs`: default that of the system. */
export function renderer({ dir }: RendererSettings, statfs?: StatFs) {
  const files = new QrFiles(dir)
  const logos = new LRUCache<string, Logo>({ max: LOGOS_MAX })
  // Retired images are deleted in the background. After an error, the next start retries.
  files.open().catch(() => {})

  /** Returns the image even if the disk refuses or is nearly full: it can still be served. */
  function store({ code, domain, text }: StoredImage): Uint8Array<ArrayBuffer> {
    const image = renderQr(text, STORED)
    if (!hasImageRoom(dir, statfs)) return image
    try {
      files.write(code, image, domain)
    } catch {
      // Rendered again on demand.
    }
    return image
  }

  function decoded({ key, png }: StoredLogo): Logo {
    const known = logos.get(key)
    if (known) return known
    const logo = { png, bitmap: readPng(png) }
    logos.set(key, logo)
    return logo
  }

  return {
    render({ text, address = text, options, logo }: RenderCommand): Rendered {
      try {
        const shown = withCaption(options, address)
        return { image: renderQr(text, shown, logo && decoded(logo)) }
      } catch (error) {
        if (error instanceof SizeError) return { sizeMin: error.sizeMin }
        throw error
      }
    },

    /** A part of a page of a print sheet for `toSvgPage` or `joinPage`. */
    sheetPart({ sheet, logo, format, isFirst }: PartCommand): Uint8Array {
      const known = logo && decoded(logo)
      const page = layOutSheet(sheet, known)
      return Buffer.from(
        format === 'svg' ? svgPictures(page, isFirst ? known : undefined) : operatorsOf(page),
      )
    },

    textsWithoutRoom,

    sheetPdf({ paper, drawings, logo }: SheetFile): Uint8Array<ArrayBuffer> {
      return toPdf({ ...PAPERS[paper], drawings, logo: logo && decoded(logo) })
    },

    /** Stores the image of a code and returns it. */
    store,

    /** Stores images of codes in one call, and returns none of them. */
    storeAll(images: readonly StoredImage[]): void {
      if (!hasImageRoom(dir, statfs)) return
      for (const image of images) store(image)
    },

    remove({ code }: { code: string }): void {
      files.remove(code)
    },
  }
}

export type Renderer = ReturnType<typeof renderer>
