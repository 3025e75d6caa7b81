/**
 * The functions of a process that runs one trial: it draws an uploaded logo, and reads codes with
 * the logo or the colors of an account before they are stored. A process, because there is no other
 * way to stop WebAssembly that does not return.
 */

import { initWasm, Resvg } from '@resvg/resvg-wasm'
import resvgFile from '@resvg/resvg-wasm/index_bg.wasm' with { type: 'file' }
import jsQR from 'jsqr'
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'
import zxingFile from 'zxing-wasm/reader/zxing_reader.wasm' with { type: 'file' }
import { type Bitmap, fitInto, LOGO_SIDE_PX, type Logo, readPng, writePng } from './logo.ts'
import { parseQrOptions, type QrOptions } from './options.ts'
import { renderQr } from './render.ts'
import { findSvgProblem, plainSvg } from './svg-logo.ts'

const PNG_SIDE_MAX = 1024
/** Limited, because each SVG code contains the logo. */
const STORED_BYTES_MAX = 256 * 1024
/** Smaller codes are for screens, and larger ones are easier to read. */
const TRIAL_SIZES = [256, 512]
const PNG_SIGNATURE = '89504e470d0a1a0a'

/** `problem`: why the logo is refused, and what to change. */
export type LogoTrial = { png: Uint8Array } | { problem: string }

export interface OptionsTrial {
  text: string
  options: QrOptions
  /** As it is stored, for `options.logo`. */
  png?: Uint8Array | undefined
}

/** Loads the decoders. */
export async function openTrials() {
  await initWasm(await Bun.file(resvgFile).arrayBuffer())
  // Without this, zxing-wasm fetches its binary from a CDN.
  prepareZXingModule({ overrides: { wasmBinary: await Bun.file(zxingFile).arrayBuffer() } })

  return {
    /** The logo as it is stored: drawn by this service, so nothing else of the file remains. */
    async tryLogo({ bytes, text }: { bytes: Uint8Array; text: string }): Promise<LogoTrial> {
      const drawn = drawLogo(bytes)
      if ('problem' in drawn) return drawn
      if (!drawn.data.some((value, at) => at % 4 === 3 && value > 0)) {
        return { problem: 'The logo is empty, or transparent everywhere.' }
      }
      const png = writePng(drawn)
      if (png.byteLength > STORED_BYTES_MAX) {
        return { problem: 'The logo has too much detail. Use fewer colors and simpler shapes.' }
      }
      const options = parseQrOptions({ logo: '1' })
      if (await isReadable({ text, options, png })) return { png }
      return {
        problem:
          'QR readers cannot read a code with this logo. Use a simpler one, without squares that ' +
          'look like the corners of a QR code.',
      }
    },

    isReadable,
  }
}

export type Trials = Awaited<ReturnType<typeof openTrials>>

function drawLogo(bytes: Uint8Array): Bitmap | { problem: string } {
  if (bytes.subarray(0, 8).toHex() === PNG_SIGNATURE) return drawPng(bytes)
  let text: string
  try {
    text = plainSvg(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return { problem: 'The file is neither a PNG nor an SVG.' }
  }
  if (!/<(\w+:)?svg[\s>]/.test(text)) return { problem: 'The file is neither a PNG nor an SVG.' }
  const problem = findSvgProblem(text)
  return problem ? { problem } : drawSvg(text)
}

function drawPng(bytes: Uint8Array): Bitmap | { problem: string } {
  const damaged = { problem: 'The PNG is damaged or incomplete. Export it again.' }
  if (bytes.length < 24) return damaged
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

function drawSvg(text: string): Bitmap | { problem: string } {
  try {
    const { width, height } = new Resvg(text)
    const mode = width >= height ? 'width' : 'height'
    const drawn = new Resvg(text, { fitTo: { mode, value: LOGO_SIDE_PX } }).render()
    return readPng(drawn.asPng())
  } catch {
    return { problem: 'The SVG is damaged, or has no size. Export it again.' }
  }
}

/** Whether both decoders read the code at every trial size. Paper adds to a small margin. */
async function isReadable({ text, options, png }: OptionsTrial): Promise<boolean> {
  const logo: Logo | undefined = png && { png, bitmap: readPng(png) }
  const margin = Math.max(4, options.margin)
  for (const size of TRIAL_SIZES) {
    const trial: QrOptions = { ...options, format: 'png', size, margin }
    const { width, height, data } = readPng(renderQr(text, trial, logo))
    const image = { width, height, data: new Uint8ClampedArray(data) }
    if (jsQR(image.data, width, height)?.data !== text) return false
    const [read] = await readBarcodes(image, { formats: ['QRCode'], maxNumberOfSymbols: 1 })
    if (read?.text !== text) return false
  }
  return true
}
