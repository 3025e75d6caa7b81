// Only the encoder: the package's own image writers would add 9 MB of memory.
import { create } from 'qrcode/lib/core/qrcode.js'
import { layOutCaption } from './caption.ts'
import type { QrMatrix } from './dots.ts'
import { clearMiddle, type Logo, logoSpan, placeIn } from './logo.ts'
import { checkColor, type QrOptions, URL_CAPTION } from './options.ts'
import { outlines } from './outlines.ts'
import { encodePng } from './png.ts'

/**
 * A QR image of `text`, with `logo` in the middle if there is one. Synchronous and pure. Throws
 * SizeError for a text too long for the PNG. By default, a text of up to 180 bytes fits the
 * smallest PNG (version 9 has 53 modules, 61 with the margin).
 */
export function renderQr(text: string, options: QrOptions, logo?: Logo): Uint8Array<ArrayBuffer> {
  const { format, level } = options
  const matrix: QrMatrix = create(text, { errorCorrectionLevel: level }).modules
  const caption = options.caption === URL_CAPTION ? withoutScheme(text) : options.caption
  if (logo) clearMiddle(matrix, logoSpan(matrix.size))
  if (format === 'png') return encodePng(matrix, { ...options, caption, logo: logo?.bitmap })
  return new TextEncoder().encode(toSvg(matrix, { ...options, caption, logo }))
}

/** Printable ASCII, as `new URL` writes every URL. */
const withoutScheme = (text: string): string => text.replace(/^\w+:\/\//, '')

/** Units of a caption in an SVG: the dots are a half to a quarter of a module, as in a PNG. */
const UNITS_A_MODULE = 12

interface SvgOptions extends Pick<QrOptions, 'dark' | 'light' | 'margin' | 'caption'> {
  logo: Logo | undefined
}

/**
 * The matrix as an SVG document without a size, one unit per module. The dark areas are outlines
 * and not rows of strokes, so that no renderer shows hairlines between the rows at an odd scale.
 */
function toSvg(matrix: QrMatrix, { dark, light, margin, caption, logo }: SvgOptions): string {
  checkColor(dark)
  checkColor(light)
  const side = matrix.size + 2 * margin
  const code = { width: matrix.size, height: matrix.size, data: matrix.data }
  const space = { width: side * UNITS_A_MODULE, dotMin: 3, dotMax: 6 }
  const below = caption === '' ? undefined : layOutCaption(caption, space)
  const dot = below ? below.scale / UNITS_A_MODULE : 0
  const height = side + (below ? below.dots.height * dot : 0)
  const left = below ? (side - below.dots.width * dot) / 2 : 0
  const link = logo ? 'xmlns:xlink="http://www.w3.org/1999/xlink" ' : ''
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${link}viewBox="0 0 ${side} ${height}" `,
    'shape-rendering="crispEdges">',
    `<path fill="${light}" d="M0 0h${side}v${height}H0z"/>`,
    `<path fill="${dark}" d="${outlines(code, margin)}"/>`,
    below
      ? `<path fill="${dark}" transform="translate(${left} ${side}) scale(${dot})" ` +
        `d="${outlines(below.dots, 0)}"/>`
      : '',
    logo ? svgImage(logo, { middle: side / 2, side: logoSpan(matrix.size) - 1 }) : '',
    '</svg>\n',
  ].join('')
}

/** The logo as a data URL: the document loads no other file. */
function svgImage({ png, bitmap }: Logo, square: { middle: number; side: number }): string {
  const { width, height } = placeIn(bitmap, square.side)
  const [x, y] = [square.middle - width / 2, square.middle - height / 2]
  return (
    `<image x="${x}" y="${y}" width="${width}" height="${height}" ` +
    `xlink:href="data:image/png;base64,${png.toBase64()}"/>`
  )
}
