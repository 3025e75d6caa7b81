// Only the encoder: the package's own image writers would add 9 MB of memory.
import { create } from 'qrcode/lib/core/qrcode.js'
import type { QrOptions } from './options.ts'
import type { QrMatrix } from './outlines.ts'

export const matrixOf = (text: string, level: QrOptions['level']): QrMatrix =>
  create(text, { errorCorrectionLevel: level }).modules

/** Modules on one side of the image, with the margin: the smallest PNG in pixels. */
export const modulesOf = (text: string, { level, margin }: QrOptions): number =>
  matrixOf(text, level).size + 2 * margin
