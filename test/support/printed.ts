import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PNG } from 'pngjs'
import { readBarcodes } from 'zxing-wasm/reader'
import './decode-qr.ts'

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
