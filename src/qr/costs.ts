import type { QrOptions } from '../draw/options.ts'
import type { Label, Sheet } from '../draw/sheet.ts'

/** Estimated time of drawings. One unit, an image of 256 pixels, is about half a millisecond. */

/** Letters and logos take most of the time of an image. */
export function costOf({ format, size, caption, logo }: QrOptions): number {
  const perMegapixel = 0.5 + (caption ? 5 : 0) + (logo ? 20 : 0)
  if (format === 'png') return Math.ceil(1 + (perMegapixel * size ** 2) / 2 ** 20)
  const cost = caption ? 8 : 1
  return format === 'svg' ? cost : 5 * cost + (logo ? 40 : 0)
}

const LABELS_MAX = 10
/** Bounds how long a requested image waits behind a part, to about 10 ms. */
const PART_COST_MAX = 20

/** Ranges of the labels of a page: other drawing comes between them. */
export function partsOf(sheet: Sheet, format: 'svg' | 'pdf'): (Sheet & { cost: number })[] {
  const { labels, hasCropMarks } = sheet
  const parts: (Sheet & { cost: number })[] = []
  for (let from = 0, to = 0; from < labels.length; from = to) {
    let cost = 1
    do cost += costOfLabel(labels[to++], format)
    while (to < labels.length && to - from < LABELS_MAX && cost < PART_COST_MAX)
    const part = [...Array(from).fill(undefined), ...labels.slice(from, to)]
    parts.push({ ...sheet, labels: part, hasCropMarks: hasCropMarks && to === labels.length, cost })
  }
  return parts
}

function costOfLabel(label: Label | undefined, format: 'svg' | 'pdf'): number {
  if (!label) return 0
  const { title, caption, address } = label
  const letters = title.length + caption.length + address.length
  return 1 + Math.ceil(letters / (format === 'svg' ? 64 : 12))
}
