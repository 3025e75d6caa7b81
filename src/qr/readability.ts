/** Checks of an uploaded logo, and of the options of a preset. Run on a thread of their own. */

import {
  type Bitmap,
  blend,
  fitInto,
  LOGO_SIDE_PX,
  type Logo,
  readPng,
  writePng,
} from '../draw/logo.ts'
import { parseQrOptions, type QrOptions } from '../draw/options.ts'
import { renderQr } from '../draw/render.ts'

const PNG_SIDE_MAX = 1024
/** Limited, because each SVG code contains the logo. */
const STORED_BYTES_MAX = 256 * 1024
/** Smaller codes are for screens, and larger ones are easier to read. */
const TRIAL_SIZES = [256, 512]
/** A code is searched in a smaller logo: the decoder's time grows with the pixels. */
const SEARCH_SIDE_PX = 256
/** Pixels around a logo in which a code is searched. */
const FRAME_PX = 40
const PNG_SIGNATURE = '89504e470d0a1a0a'
/** Offset of the text IHDR: the header is the first chunk. */
const HEADER_AT = 12

interface LogoFile {
  bytes: Uint8Array
  /** The longest short URL: the smaller the modules, the more of them a logo hides. */
  text: string
}

/** `problem`: why the logo is refused, and what to change. `wasSearched`: the slow part has run. */
export type CheckedLogo =
  | { png: Uint8Array; wasSearched: true }
  | { problem: string; wasSearched?: true }

export interface Trial {
  text: string
  options: QrOptions
  /** The stored logo, for `options.logo`. */
  png?: Uint8Array | undefined
}

/** At the first use: it takes 30 ms and 8 MB. */
const loadDecoder = () => import('jsqr')

/** The logo as it is stored: written by this service, so nothing else of the file remains. */
async function checkLogo({ bytes, text }: LogoFile): Promise<CheckedLogo> {
  const drawn = drawPng(bytes)
  if ('problem' in drawn) return drawn
  if (!drawn.data.some((value, at) => at % 4 === 3 && value > 0)) {
    return { problem: 'The logo is empty, or transparent everywhere.' }
  }
  const png = writePng(drawn)
  if (png.byteLength > STORED_BYTES_MAX) {
    return { problem: 'The logo has too much detail. Use fewer colors and simpler shapes.' }
  }
  const options = parseQrOptions({ logo: '1' })
  const isFine = !(await containsCode(drawn)) && (await isReadable({ text, options, png }))
  if (isFine) return { png, wasSearched: true }
  return {
    problem:
      'QR readers cannot read a code with this logo. Use a simpler one, without squares that ' +
      'look like the corners of a QR code.',
    wasSearched: true,
  }
}

function drawPng(bytes: Uint8Array): Bitmap | { problem: string } {
  if (bytes.subarray(0, 8).toHex() !== PNG_SIGNATURE) {
    return { problem: 'The file is not a PNG. Export it as a PNG.' }
  }
  const damaged = { problem: 'The PNG is damaged or incomplete. Export it again.' }
  // The decoder uses the last of several headers.
  if (bytes.length < 24 || Buffer.from(bytes).lastIndexOf('IHDR') !== HEADER_AT) return damaged
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // Before it is decoded: the size decides the memory.
  if (Math.max(view.getUint32(16), view.getUint32(20)) > PNG_SIDE_MAX) {
    return { problem: `The PNG is larger than ${PNG_SIDE_MAX} x ${PNG_SIDE_MAX} pixels.` }
  }
  try {
    const bitmap = readPng(bytes)
    const isSmall = Math.max(bitmap.width, bitmap.height) <= LOGO_SIDE_PX
    return isSmall ? bitmap : fitInto(bitmap, LOGO_SIDE_PX)
  } catch {
    return damaged
  }
}

/** Whether a decoder finds a code. If there are two, decoders differ in which one they read. */
async function containsCode(drawn: Bitmap): Promise<boolean> {
  const isSmall = Math.max(drawn.width, drawn.height) <= SEARCH_SIDE_PX
  const { width, height, data } = isSmall ? drawn : fitInto(drawn, SEARCH_SIDE_PX)
  const opaque = { width, height, data: data.slice() }
  blend(opaque, [255, 255, 255])
  const [wide, high] = [width + 2 * FRAME_PX, height + 2 * FRAME_PX]
  const framed = new Uint8ClampedArray(4 * wide * high).fill(255)
  for (let y = 0; y < height; y++) {
    const row = opaque.data.subarray(4 * y * width, 4 * (y + 1) * width)
    framed.set(row, 4 * ((y + FRAME_PX) * wide + FRAME_PX))
  }
  const { default: decode } = await loadDecoder()
  return decode(framed, wide, high) !== null
}

/** Whether a decoder reads the code at every trial size. Paper adds to a small margin. */
async function isReadable({ text, options, png }: Trial): Promise<boolean> {
  const { default: decode } = await loadDecoder()
  const logo: Logo | undefined = png && { png, bitmap: readPng(png) }
  const margin = Math.max(4, options.margin)
  return TRIAL_SIZES.every((size) => {
    // A caption is far enough below the code.
    const trial: QrOptions = { ...options, caption: '', format: 'png', size, margin }
    const { width, height, data } = readPng(renderQr(text, trial, logo))
    return decode(new Uint8ClampedArray(data), width, height)?.data === text
  })
}

export const readabilityChecks = { checkLogo, isReadable }

export type ReadabilityChecks = typeof readabilityChecks
