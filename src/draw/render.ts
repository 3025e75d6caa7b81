import { clearMiddle, type Logo, logoSpan } from './logo.ts'
import { matrixOf } from './matrix.ts'
import type { QrOptions } from './options.ts'
import { drawPage, toPdf } from './pdf.ts'
import { drawQr, type Page, type Picture, toSvg } from './picture.ts'
import { encodePng } from './png.ts'

/**
 * A QR image of `text`, with `logo` in the middle if there is one. Synchronous and pure. Throws
 * SizeError for a text too long for the PNG. By default, a text of up to 180 bytes fits the
 * smallest PNG (version 9 has 53 modules, 61 with the margin). The caption is the text itself, no
 * `URL_CAPTION`.
 */
export function renderQr(text: string, options: QrOptions, logo?: Logo): Uint8Array<ArrayBuffer> {
  const { format, level, mm } = options
  const matrix = matrixOf(text, level)
  if (format === 'png') {
    if (logo) clearMiddle(matrix, logoSpan(matrix.size))
    return encodePng(matrix, { ...options, logo: logo?.bitmap })
  }
  const picture = drawQr(matrix, { ...options, logo })
  if (format === 'pdf') {
    const page = pageOf(picture, mm)
    return toPdf({ ...page, drawings: [drawPage(page)], logo })
  }
  return new TextEncoder().encode(toSvg(picture, { mm }))
}

/** Millimetres of a PDF that names no size. */
const PDF_WIDTH_MM = 40

/** A page of the size of the picture. */
function pageOf(picture: Picture, width = PDF_WIDTH_MM): Page {
  const scale = width / picture.width
  return { width, height: picture.height * scale, pictures: [{ picture, x: 0, y: 0, scale }] }
}
