import { html } from '../lib/html.ts'
import { CAPTION_GAP_MODULES, layOutCaption } from './caption.ts'
import { clearMiddle, type Logo, logoSpan, placeIn } from './logo.ts'
import { outlines, type QrMatrix } from './matrix.ts'
import { checkColor, type QrOptions } from './options.ts'
import { pathOf, shortNumber } from './outline.ts'

/** A drawing for SVG and PDF. One unit is a module, or a millimetre on a sheet. */
export interface Picture {
  width: number
  height: number
  shapes: readonly Shape[]
  image?: PlacedLogo | undefined
}

export interface Shape {
  /** A color like `#1a2e4f`. */
  fill: string
  /** Path data that `parsePath` reads. */
  path: string
  /** Whether this is a letter: its edges are smoothed, edges of modules are not. */
  isText?: boolean
  /** A line of a text that the typeface cannot draw: only a browser does. `path` is empty. */
  text?: { text: string; size: number; width: number; x: number; y: number }
}

/** A sheet of paper. All lengths are millimetres, from the top left. */
export interface PageSize {
  width: number
  height: number
}

export interface Page extends PageSize {
  pictures: readonly PlacedPicture[]
}

export interface PlacedPicture {
  picture: Picture
  x: number
  y: number
  /** Millimetres of a unit of the picture. */
  scale: number
}

interface PlacedLogo {
  logo: Logo
  x: number
  y: number
  width: number
  height: number
}

interface PictureOptions
  extends Pick<QrOptions, 'dark' | 'light' | 'margin' | 'caption' | 'transparent'> {
  logo?: Logo | undefined
}

/** A code with its margin, its caption and its logo. The middle of `matrix` is cleared for it. */
export function drawQr(matrix: QrMatrix, options: PictureOptions): Picture {
  const { dark, light, margin, caption: text, logo, transparent } = options
  checkColor(dark)
  checkColor(light)
  if (logo) clearMiddle(matrix, logoSpan(matrix.size))
  const side = matrix.size + 2 * margin
  const caption = text === '' ? undefined : layOutCaption(text, matrix.size)
  const below = margin + matrix.size + CAPTION_GAP_MODULES
  const height = caption ? Number(shortNumber(below + caption.height + margin)) : side
  const ground = { fill: light, path: `M0 0h${side}v${height}H0z` }
  const shapes = [
    ...(transparent ? [] : [ground]),
    { fill: dark, path: outlines(matrix, margin) },
    ...(caption
      ? [{ fill: dark, path: pathOf(caption.outlineAt(margin, below)), isText: true }]
      : []),
  ]
  const image = logo && placeLogo(logo, { middle: side / 2, side: logoSpan(matrix.size) - 1 })
  return { width: side, height, shapes, image }
}

function placeLogo(logo: Logo, square: { middle: number; side: number }): PlacedLogo {
  const { width, height } = placeIn(logo.bitmap, square.side)
  return { logo, x: square.middle - width / 2, y: square.middle - height / 2, width, height }
}

/** Pixels of an SVG without a size in millimetres, where a program does not choose its own. */
const WIDTH_PX = 512

/**
 * An SVG document. The dark areas are outlines and not rows of strokes, so that no renderer shows
 * hairlines between the rows at an odd scale. `mm`: its width on paper.
 */
export function toSvg(
  { width, height, shapes, image }: Picture,
  { mm }: { mm?: number | undefined },
): string {
  const link = image ? 'xmlns:xlink="http://www.w3.org/1999/xlink" ' : ''
  const [wide, unit] = mm === undefined ? [WIDTH_PX, ''] : [mm, 'mm']
  const high = shortNumber((wide * height) / width)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${link}viewBox="0 0 ${width} ${height}" `,
    // ImageMagick's own renderer draws strokes unless they are turned off.
    `width="${wide}${unit}" height="${high}${unit}" stroke="none" shape-rendering="crispEdges">`,
    svgContent({ shapes, image }),
    '</svg>\n',
  ].join('')
}

export function svgContent(
  { shapes, image }: Pick<Picture, 'shapes' | 'image'>,
  drawLogo = svgImage,
): string {
  const paths = shapes.map(({ fill, path, isText, text }) =>
    text
      ? svgText(text, fill)
      : `<path fill="${fill}" ${isText ? 'shape-rendering="auto" ' : ''}d="${path}"/>`,
  )
  return paths.join('') + (image ? drawLogo(image) : '')
}

/** As wide as estimated in any font, so that a line is whole and inside of its label. */
const svgText = ({ text, size, width, x, y }: NonNullable<Shape['text']>, fill: string): string =>
  `<text x="${shortNumber(x)}" y="${shortNumber(y)}" fill="${fill}" ` +
  `font-size="${shortNumber(size)}" font-family="sans-serif" ` +
  `textLength="${shortNumber(width)}" lengthAdjust="spacingAndGlyphs">${html`${text}`}</text>`

/** The logo as a data URL: the document loads no other file. */
const svgImage = ({ logo, x, y, width, height }: PlacedLogo): string =>
  `<image x="${x}" y="${y}" width="${width}" height="${height}" ` +
  `xlink:href="data:image/png;base64,${logo.png.toBase64()}"/>`

/** Refers to the logo that `svgPictures` defines. */
const svgUse = ({ logo, x, y, width }: PlacedLogo): string =>
  `<use xlink:href="#logo" transform="translate(${x} ${y}) scale(${width / logo.bitmap.width})"/>`

/** Pictures of a page. `logo`: of each code, defined by the first part of a page. */
export function svgPictures({ pictures }: Page, logo?: Logo): string {
  const image = logo && svgImage({ logo, x: 0, y: 0, ...logo.bitmap })
  const placed = pictures.map(
    ({ picture, x, y, scale }) =>
      `<g transform="translate(${shortNumber(x)} ${shortNumber(y)}) scale(${scale})">` +
      `${svgContent(picture, svgUse)}</g>`,
  )
  return `${image ? `<defs><g id="logo">${image}</g></defs>` : ''}${placed.join('')}`
}

/** A page as an SVG document in millimetres. `parts`: from `svgPictures`. */
export function toSvgPage({ width, height }: PageSize, parts: readonly Uint8Array[]) {
  const head = [
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ',
    `viewBox="0 0 ${width} ${height}" width="${width}mm" height="${height}mm" stroke="none">`,
    `<path fill="#ffffff" d="M0 0h${width}v${height}H0z"/>`,
  ].join('')
  return Buffer.concat([Buffer.from(head), ...parts, Buffer.from('</svg>\n')])
}
