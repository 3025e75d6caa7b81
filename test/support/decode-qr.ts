import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { initWasm, Resvg } from '@resvg/resvg-wasm'
import jsQR from 'jsqr'
import { PNG } from 'pngjs'
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'

/** Reads QR images back with decoders that share no code with the encoder. */

export interface Bitmap {
  width: number
  height: number
  /** Red, green, blue, alpha of each pixel, row by row. */
  data: Uint8ClampedArray
}

interface DecodedQr {
  text: string
  /** Pixels of a PNG, view box units of an SVG: so for ours, modules. */
  width: number
  height: number
  /** The image as it came: a pixel for each pixel of a PNG or view box unit of an SVG. */
  bitmap: Bitmap
  /** Who could read it: at least one, and nobody read another text. */
  readers: ('jsQR' | 'zxing')[]
}

await initWasm(
  await Bun.file(Bun.resolveSync('@resvg/resvg-wasm/index_bg.wasm', import.meta.dir)).arrayBuffer(),
)
const wasm = Bun.file(Bun.fileURLToPath(import.meta.resolve('zxing-wasm/reader/zxing_reader.wasm')))
// Without this, zxing-wasm fetches its binary from a CDN.
prepareZXingModule({ overrides: { wasmBinary: await wasm.arrayBuffer() } })

/** Throws if the image is malformed, if no decoder can read it, or if two read different texts. */
export async function decodeQr(bytes: Uint8Array, contentType?: string): Promise<DecodedQr> {
  const isSvg = contentType ? contentType.startsWith('image/svg+xml') : bytes[0] === 0x3c
  const draw = (zoom: number) => drawPaths(new TextDecoder().decode(bytes), zoom)
  const bitmap = isSvg ? draw(1) : readPng(bytes)
  const image = isSvg ? draw(4) : bitmap
  const read = [
    { reader: 'jsQR' as const, text: jsQR(image.data, image.width, image.height)?.data },
    { reader: 'zxing' as const, text: await readWithZxing(image) },
  ].filter(({ text }) => text !== undefined)
  const texts = new Set(read.map(({ text }) => text))
  const [text] = texts
  if (text === undefined || texts.size !== 1) {
    throw new Error(`${texts.size} different texts read from a QR image of ${bitmap.width} px`)
  }
  const { width, height } = bitmap
  return { text, width, height, bitmap, readers: read.map(({ reader }) => reader) }
}

/** The color of a pixel as `#rrggbb`. Throws if it is not opaque. */
export function pixelAt({ width, data }: Bitmap, x: number, y: number): string {
  const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray((y * width + x) * 4)
  if (alpha !== 255) throw new Error(`pixel ${x}, ${y} is not opaque`)
  return `#${[red, green, blue].map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

interface PngFacts {
  width: number
  height: number
  bitDepth: number
  colorType: number
  /** `#rrggbb` each. */
  palette: string[]
  /** Types in their order. */
  chunks: string[]
}

/** Reads a PNG's chunks. Throws if the signature, a length or a checksum is wrong. */
export function inspectPng(bytes: Uint8Array): PngFacts {
  if (bytes.subarray(0, 8).toHex() !== '89504e470d0a1a0a') throw new Error('not a PNG')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const chunks = new Map<string, Uint8Array>()
  let offset = 8
  while (offset < bytes.length) {
    const end = offset + 8 + view.getUint32(offset)
    const type = String.fromCharCode(...bytes.subarray(offset + 4, offset + 8))
    const isSound = Bun.hash.crc32(bytes.subarray(offset + 4, end)) === view.getUint32(end)
    if (!isSound) throw new Error(`bad checksum in chunk ${type}`)
    chunks.set(type, bytes.subarray(offset + 8, end))
    offset = end + 4
  }
  const header = chunks.get('IHDR') ?? new Uint8Array(13)
  const palette = (chunks.get('PLTE') ?? new Uint8Array(0)).toHex().match(/.{6}/g) ?? []
  return {
    width: view.getUint32(16),
    height: view.getUint32(20),
    bitDepth: header[8] ?? 0,
    colorType: header[9] ?? 0,
    palette: palette.map((digits) => `#${digits}`),
    chunks: [...chunks.keys()],
  }
}

function readPng(bytes: Uint8Array): Bitmap {
  const { width, height, data } = PNG.sync.read(Buffer.from(bytes))
  return { width, height, data: new Uint8ClampedArray(data) }
}

async function readWithZxing(bitmap: Bitmap): Promise<string | undefined> {
  const [result] = await readBarcodes(bitmap, { formats: ['QRCode'], maxNumberOfSymbols: 1 })
  return result?.text
}

/** An SVG, drawn by a renderer that shares no code with ours. */
export const drawSvg = (svg: string, fitTo: { mode: 'width' | 'zoom'; value: number }) =>
  new Resvg(svg, { fitTo }).render()

const SVG_START = /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 (\d+) \d+" [^<>]*>/
const SVG_PATHS = /^(?:<path fill="#[0-9a-f]{6}" d="[MhHvVz\d -]+"\/>)+<\/svg>\n$/

/**
 * Draws `zoom` pixels a module. Throws at anything but filled paths, so that no script, style or
 * link gets by unseen.
 */
function drawPaths(svg: string, zoom: number): Bitmap {
  const start = SVG_START.exec(svg)
  if (!start || !SVG_PATHS.test(svg.slice(start[0].length))) {
    throw new Error('not an SVG of plain filled paths')
  }
  const { width, height, pixels } = drawSvg(svg, { mode: 'width', value: Number(start[1]) * zoom })
  return { width, height, data: new Uint8ClampedArray(pixels) }
}

/** Runs a program and returns its output. Throws if it fails. */
export function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
  return stdout.toString()
}

/** A folder for files of other programs. */
export function scratch(): Disposable & { path: (name: string) => string; dir: string } {
  const dir = mkdtempSync(join(tmpdir(), 'hopcode-print-'))
  return {
    dir,
    path: (name) => join(dir, name),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** The pages of a PDF as PNG files, by pdftoppm. */
export async function drawPages(pdf: Uint8Array, dir: string, dpi: number): Promise<string[]> {
  await Bun.write(join(dir, 'pages.pdf'), pdf)
  run('pdftoppm', '-r', String(dpi), '-png', join(dir, 'pages.pdf'), join(dir, 'page'))
  const names = readdirSync(dir).filter((name) => /^page-\d+\.png$/.test(name))
  return names.sort().map((name) => join(dir, name))
}

interface FoundCode {
  text: string
  /** Its corners, in pixels. */
  left: number
  right: number
  top: number
  bottom: number
}

/** All codes of a picture, by zxing. */
export async function findCodes(file: string): Promise<FoundCode[]> {
  const { width, height, data } = PNG.sync.read(Buffer.from(await Bun.file(file).arrayBuffer()))
  const image = { width, height, data: new Uint8ClampedArray(data), colorSpace: 'srgb' as const }
  const found = await readBarcodes(image, { formats: ['QRCode'], maxNumberOfSymbols: 255 })
  return found.map(({ text, position }) => {
    const corners = [position.topLeft, position.topRight, position.bottomLeft, position.bottomRight]
    const xs = corners.map(({ x }) => x)
    const ys = corners.map(({ y }) => y)
    return {
      text,
      left: Math.min(...xs),
      right: Math.max(...xs),
      top: Math.min(...ys),
      bottom: Math.max(...ys),
    }
  })
}

/** Whether zbar reads the text. */
export const zbarReads = (file: string, text: string): boolean =>
  Bun.spawnSync(['zbarimg', '-q', '--raw', file]).stdout.toString().trim() === text
