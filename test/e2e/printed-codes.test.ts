/**
 * Codes with captions, read after other programs have drawn them, and after a simulated print. All
 * 90 of them, in about five minutes: PRINTED_CODES=90 npm test -- test/e2e/printed-codes
 */

import { expect } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { PNG } from 'pngjs'
import { readPng } from '../../src/draw/logo.ts'
import { parsePrintOptions, type QrOptions } from '../../src/draw/options.ts'
import { SizeError } from '../../src/draw/png.ts'
import { renderQr } from '../../src/draw/render.ts'
import { loadTypeface } from '../../src/draw/typeface.ts'
import { canBeCapital, captionOf, contentOf } from '../../src/qr/content.ts'
import { findCodes, run, scratch, zbarReads } from '../support/decode-qr.ts'
import { pngLogo } from '../support/logos.ts'
import { testWith } from '../support/tools.ts'

const COUNT = Number(process.env.PRINTED_CODES ?? 6)

const test = testWith('pdftoppm', 'mutool', 'zbarimg', 'rsvg-convert', 'imagemagick', 'cairosvg')

await loadTypeface([])

const CAPTIONS = [
  'Scan für unser Menü, ß & €',
  'Σαρώστε για το μενού',
  'Отсканируйте: меню дня',
  'Quét mã để xem thực đơn',
  '1',
  'Zażółć gęślą jaźń — Příliš žluťoučký',
]
const ADDRESSES = [
  'https://go.example/SPRING26',
  'http://localhost:3000/ABCDEFGH',
  'https://links.example/a-longer-path/QWERTYUIOP0123456789',
  'https://go.example/men%C3%BC-297',
  'https://s.example/CODE42',
]
const STYLES = [
  {},
  { logo: '1' },
  { dark: '#aa0000', light: '#ffffee', level: 'Q' },
  { margin: '6', capitals: '1' },
  { ref: 'poster', dark: '#004400' },
]
const SIZES = ['64', '128', '512', '2048', '4096']

const png = pngLogo(200)
const logo = { png, bitmap: readPng(png) }

/** 30 codes have each caption in each style; the next ones differ in the address. */
function codeOf(n: number) {
  const address = ADDRESSES[(n + Math.floor(n / 30)) % ADDRESSES.length] ?? ''
  const { capitals, ...style } = { capitals: undefined, ...STYLES[n % STYLES.length] }
  const caption = CAPTIONS[n % CAPTIONS.length]
  const isCapital = capitals && canBeCapital(address) ? { capitals } : {}
  const query = { ...style, ...isCapital, caption, mm: '20' }
  const render = (more: Record<string, string>) => {
    const options = parsePrintOptions({ ...query, ...more })
    const shown = { ...options, caption: captionOf(options, address) }
    return renderQr(contentOf(address, options), shown, options.logo ? logo : undefined)
  }
  return { render, text: contentOf(address, parsePrintOptions(query) as QrOptions) }
}

async function expectRead(file: string, text: string, what: string): Promise<void> {
  const texts = (await findCodes(file)).map((found) => found.text)
  expect([what, 'zxing', ...texts]).toEqual([what, 'zxing', text])
  expect([what, 'zbar', zbarReads(file, text)]).toEqual([what, 'zbar', true])
}

test('other programs draw the plain SVG of the API so that it is read', async () => {
  using files = scratch()
  const { path } = files
  for (const text of ADDRESSES) {
    await Bun.write(path('code.svg'), renderQr(text, parsePrintOptions({ format: 'svg' })))
    run('rsvg-convert', path('code.svg'), '-o', path('rsvg.png'))
    await expectRead(path('rsvg.png'), text, 'rsvg')
    // The ending selects ImageMagick's own renderer.
    copyFileSync(path('code.svg'), path('code.msvg'))
    run('convert', path('code.msvg'), path('msvg.png'))
    await expectRead(path('msvg.png'), text, 'msvg')
    for (const drawn of ['rsvg.png', 'msvg.png']) {
      const { width, height } = PNG.sync.read(Buffer.from(await Bun.file(path(drawn)).bytes()))
      expect([drawn, width, height]).toEqual([drawn, 512, 512])
    }
  }
})

/** The PNG, with the size that a refusal asks for where the modules do not fit into 64 pixels. */
function pngOf(render: ReturnType<typeof codeOf>['render'], size: string): Uint8Array<ArrayBuffer> {
  try {
    return render({ size })
  } catch (error) {
    if (!(error instanceof SizeError)) throw error
    expect([size, error.sizeMin > Number(size)]).toEqual(['64', true])
    return render({ size: String(error.sizeMin) })
  }
}

/** Widths of 20 mm are right to 0.1 mm. */
const expectWidth = (mm: number) => expect(Math.abs(mm - 20)).toBeLessThan(0.1)

test(`${COUNT} codes are read by two decoders, drawn by six programs and printed`, async () => {
  using files = scratch()
  const { path, dir } = files
  for (let n = 0; n < COUNT; n++) {
    const { render, text } = codeOf(n)
    const image = pngOf(render, SIZES[(n + Math.floor(n / 5)) % SIZES.length] ?? '512')
    await Bun.write(path('code.png'), image)
    await expectRead(path('code.png'), text, `png ${n}`)
    const { width } = PNG.sync.read(Buffer.from(image))
    const perMetre = new DataView(image.buffer).getUint32(Buffer.from(image).indexOf('pHYs') + 4)
    expectWidth((width / perMetre) * 1000)

    const svg = new TextDecoder().decode(render({ format: 'svg' }))
    await Bun.write(path('code.svg'), svg)
    expectWidth(Number(/ width="([\d.]+)mm"/.exec(svg)?.[1]))
    run('rsvg-convert', '-d', '300', '-p', '300', path('code.svg'), '-o', path('rsvg.png'))
    await expectRead(path('rsvg.png'), text, `rsvg ${n}`)
    run('convert', '-density', '300', path('code.svg'), '-background', 'white', path('magick.png'))
    await expectRead(path('magick.png'), text, `ImageMagick ${n}`)

    run('cairosvg', path('code.svg'), '-d', '300', '-f', 'png', '-o', path('cairo.png'))
    await expectRead(path('cairo.png'), text, `CairoSVG ${n}`)

    const pdf = render({ format: 'pdf' })
    await Bun.write(path('code.pdf'), pdf)
    expectWidth(
      (Number(/MediaBox \[0 0 ([\d.]+)/.exec(Buffer.from(pdf).toString('latin1'))?.[1]) / 72) *
        25.4,
    )
    run('pdftoppm', '-r', '300', '-png', '-singlefile', path('code.pdf'), join(dir, 'poppler'))
    await expectRead(path('poppler.png'), text, `poppler ${n}`)
    run('mutool', 'draw', '-q', '-r', '300', '-o', path('mupdf.png'), path('code.pdf'))
    await expectRead(path('mupdf.png'), text, `mupdf ${n}`)

    // 2 cm at 300 dpi, out of focus, held at an angle, and sent as a JPEG of low quality.
    const print = '-bordercolor white -border 30 -blur 0x1 -background white -rotate 7 -quality 40'
    run('convert', path('poppler.png'), ...print.split(' '), path('print.jpg'))
    run('convert', path('print.jpg'), path('print.png'))
    await expectRead(path('print.png'), text, `print ${n}`)
  }
}, 600_000)
