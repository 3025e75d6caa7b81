import { LRUCache } from 'lru-cache'
import { type Logo, readPng } from '../draw/logo.ts'
import { parseQrOptions, type QrOptions, URL_CAPTION } from '../draw/options.ts'
import { operatorsOf, toPdf } from '../draw/pdf.ts'
import { svgPictures } from '../draw/picture.ts'
import { SizeError } from '../draw/png.ts'
import { renderQr } from '../draw/render.ts'
import {
  findLeftOut,
  type LeftOut,
  layOutSheet,
  MISSING_MAX,
  PAPERS,
  type Paper,
  type Sheet,
} from '../draw/sheet.ts'
import { findMissing, loadTypeface } from '../draw/typeface.ts'
import { captionOf } from './content.ts'
import { hasImageRoom, QrFiles, type StatFs } from './files.ts'

/** Options of every stored image: the spec's defaults. */
const STORED = parseQrOptions({})

export interface RendererSettings {
  /** The folder of the stored images. */
  dir: string
  /** Files and folders of fonts behind the built-in one. */
  fonts: readonly string[]
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

/** `sizeMin`: pixels that the PNG needs. `missing`: what of the caption no font has. */
export type Rendered =
  | { image: Uint8Array<ArrayBuffer> }
  | { sizeMin: number }
  | { missing: string[] }

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
export function renderer({ dir, fonts }: RendererSettings, statfs?: StatFs) {
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

  async function missingIn(text: string): Promise<string[]> {
    if (text === '') return []
    await loadTypeface(fonts)
    return findMissing(text).slice(0, MISSING_MAX)
  }

  return {
    /** An address that no font can draw is left out below the code. */
    async render({ text, address = text, options, logo }: RenderCommand): Promise<Rendered> {
      const caption = captionOf(options, address)
      const missing = await missingIn(caption)
      if (missing.length > 0 && options.caption !== URL_CAPTION) return { missing }
      try {
        const shown = { ...options, caption: missing.length > 0 ? '' : caption }
        return { image: renderQr(text, shown, logo && decoded(logo)) }
      } catch (error) {
        if (error instanceof SizeError) return { sizeMin: error.sizeMin }
        throw error
      }
    },

    /** A part of a page of a print sheet for `toSvgPage` or `joinPage`. */
    async sheetPart({ sheet, logo, format, isFirst }: PartCommand): Promise<Uint8Array> {
      await loadTypeface(fonts)
      const known = logo && decoded(logo)
      const page = layOutSheet(sheet, known)
      return Buffer.from(
        format === 'svg' ? svgPictures(page, isFirst ? known : undefined) : operatorsOf(page),
      )
    },

    async findLeftOut(sheet: Sheet): Promise<LeftOut> {
      await loadTypeface(fonts)
      return findLeftOut(sheet)
    },

    findMissing: ({ text }: { text: string }): Promise<string[]> => missingIn(text),

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
