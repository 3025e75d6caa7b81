/** PDF 1.6 files of filled outlines and logos: no fonts, no metadata. */

import { promisify } from 'node:util'
import { deflate, deflateSync } from 'node:zlib'
import type { Logo } from './logo.ts'
import { rgbOf } from './options.ts'
import { type Outline, parsePath, shortNumber, stepsOf } from './outline.ts'
import type { Page, PageSize, Shape } from './picture.ts'

const POINTS_PER_MM = 72 / 25.4

/** The drawing of a page, compressed: what `toPdf` collects. */
export const drawPage = (page: Page): Uint8Array => deflateSync(unitOf(page) + operatorsOf(page))

const deflateLater = promisify(deflate)

/** The same from `operatorsOf` of parts of the page. Compressed outside of this thread. */
export const joinPage = (size: PageSize, parts: readonly Uint8Array[]): Promise<Uint8Array> =>
  deflateLater(Buffer.concat([Buffer.from(unitOf(size)), ...parts]))

interface Pages {
  /** Width of every page, in millimetres. */
  width: number
  height: number
  /** From `drawPage`. */
  drawings: readonly Uint8Array[]
  /** The logo of every code. */
  logo?: Logo | undefined
}

export function toPdf({ width, height, drawings, logo }: Pages): Uint8Array<ArrayBuffer> {
  const file = new PdfFile()
  const images = logo ? `${LOGO} ${addImage(file, logo)}` : ''
  const box = [width, height].map((mm) => shortNumber(mm * POINTS_PER_MM)).join(' ')
  const kids = drawings.map((drawing) => {
    const contents = file.add('/Filter /FlateDecode', drawing)
    return file.add(
      `/Type /Page /Parent ${file.pages} /MediaBox [0 0 ${box}] /Contents ${contents} ` +
        `/Resources << /XObject << ${images} >> >>`,
    )
  })
  return file.end(kids)
}

const LOGO = '/Logo'

/** An image with its transparency. */
function addImage(file: PdfFile, { bitmap }: Logo): string {
  const { width, height, data } = bitmap
  const channel = (keep: (at: number) => boolean) => deflateSync(data.filter((_, at) => keep(at)))
  const head =
    `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /BitsPerComponent 8 ` +
    '/Filter /FlateDecode /ColorSpace '
  const alpha = file.add(
    `${head}/DeviceGray`,
    channel((at) => at % 4 === 3),
  )
  return file.add(
    `${head}/DeviceRGB /SMask ${alpha}`,
    channel((at) => at % 4 !== 3),
  )
}

/** The unit becomes the millimetre, with y downwards. */
function unitOf({ height }: PageSize): string {
  const unit = POINTS_PER_MM.toFixed(6)
  return `${unit} 0 0 -${unit} 0 ${shortNumber(height * POINTS_PER_MM)} cm\n`
}

/** The pictures of a page, or of a part of one. */
export function operatorsOf({ pictures }: Page): string {
  const drawn = pictures.map(({ picture, x, y, scale }) => {
    const { shapes, image } = picture
    const logo =
      image &&
      `q ${image.width} 0 0 ${-image.height} ${image.x} ${image.y + image.height} cm ` +
        `${LOGO} Do Q\n`
    return `q ${scale} 0 0 ${scale} ${x} ${y} cm\n${shapes.map(fillOf).join('')}${logo ?? ''}Q\n`
  })
  return drawn.join('')
}

const fillOf = ({ fill, path }: Shape): string =>
  `${rgbOf(fill)
    .map((value) => shortNumber(value / 255))
    .join(' ')} rg\n${pathOperators(parsePath(path))}f\n`

const OPERATORS: Readonly<Record<string, string>> = { M: 'm', L: 'l', Z: 'h' }

function pathOperators(outline: Outline): string {
  let operators = ''
  let [x, y] = [0, 0]
  for (const [command, points] of stepsOf(outline)) {
    const [a = 0, b = 0] = points
    const [toX = 0, toY = 0] = points.slice(-2)
    // A quadratic curve as a cubic one, the only one of PDF.
    const [beforeX, beforeY] = [x + (2 * (a - x)) / 3, y + (2 * (b - y)) / 3]
    const [afterX, afterY] = [toX + (2 * (a - toX)) / 3, toY + (2 * (b - toY)) / 3]
    const numbers = command === 'Q' ? [beforeX, beforeY, afterX, afterY, toX, toY] : points
    operators += `${numbers.map(shortNumber).join(' ')} ${OPERATORS[command] ?? 'c'}\n`
    if (command !== 'Z') [x, y] = [toX, toY]
  }
  return operators
}

/** Collects numbered objects and writes them with the table of their offsets. */
class PdfFile {
  readonly #parts: Buffer[] = [Buffer.from('%PDF-1.6\n%\xe2\xe3\xcf\xd3\n', 'latin1')]
  readonly #offsets: number[] = [0, 0]
  #length = this.#parts[0]?.length ?? 0
  /** The reference of the list of pages, which is written last. */
  readonly pages = '2 0 R'

  /** Returns the reference of a dictionary, which may have a stream. */
  add(entries: string, stream?: Uint8Array): string {
    const id = this.#offsets.push(0)
    this.#write(id, entries, stream)
    return `${id} 0 R`
  }

  end(kids: readonly string[]): Uint8Array<ArrayBuffer> {
    // Otherwise print dialogs shrink labels to the margins of the printer.
    const view = '/ViewerPreferences << /PrintScaling /None >>'
    this.#write(1, `/Type /Catalog /Pages ${this.pages} ${view}`)
    this.#write(2, `/Type /Pages /Count ${kids.length} /Kids [${kids.join(' ')}]`)
    const count = this.#offsets.length + 1
    const rows = this.#offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`)
    const end =
      `xref\n0 ${count}\n0000000000 65535 f \n${rows.join('')}` +
      `trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${this.#length}\n%%EOF\n`
    return new Uint8Array(Buffer.concat([...this.#parts, Buffer.from(end)]))
  }

  #write(id: number, entries: string, stream?: Uint8Array): void {
    this.#offsets[id - 1] = this.#length
    const length = stream ? ` /Length ${stream.length}` : ''
    const parts = [`${id} 0 obj\n<< ${entries}${length} >>\n`, 'endobj\n']
    if (stream) parts.splice(1, 0, 'stream\n', '\nendstream\n')
    const bytes = parts.map((text) => Buffer.from(text))
    if (stream) bytes.splice(2, 0, Buffer.from(stream))
    this.#parts.push(...bytes)
    this.#length += bytes.reduce((sum, part) => sum + part.length, 0)
  }
}
