// How much faster is our QR PNG, including the matrix, than toBuffer of the qrcode package?
// bun bench/micro/png.bench.ts

import QRCode from 'qrcode'
import qrcodeManifest from 'qrcode/package.json' with { type: 'json' }
import { parseQrOptions } from '../../src/qr/options.ts'
import { renderQr } from '../../src/qr/render.ts'
import { decodeQr } from '../../test/support/decode-qr.ts'
import { printMachine, timeInTurn } from '../lib/micro.ts'
import { median } from '../lib/rounds.ts'

const TEXT = 'https://hop.example/ABCDEFGH'
const COLORS = { dark: '#1a2e4f', light: '#ffffff' }
const DEFAULTS = parseQrOptions({})
const ROUNDS = 5

const VARIANTS = {
  ours: async (size: number): Promise<Uint8Array> => renderQr(TEXT, { ...DEFAULTS, size }),
  qrcode: (size: number): Promise<Uint8Array> =>
    QRCode.toBuffer(TEXT, { width: size, errorCorrectionLevel: 'M', margin: 4, color: COLORS }),
}
type Variant = keyof typeof VARIANTS

const CASES = [
  { size: 512, calls: { ours: 400, qrcode: 15 } },
  { size: 2048, calls: { ours: 150, qrcode: 5 } },
]

interface Timing {
  p50Ms: number
  p95Ms: number
}

const [variant, size, calls] = process.argv.slice(2)
if (variant === 'ours' || variant === 'qrcode') {
  console.log(JSON.stringify(await time(variant, Number(size), Number(calls))))
} else {
  await compare()
}

/** Runs each variant in a separate process, in turn, once per round. */
async function compare(): Promise<void> {
  printMachine()
  console.log(`qrcode ${qrcodeManifest.version}`)
  console.log(
    '| size px | ours p50 ms | ours p95 ms | qrcode p50 ms | times faster | ours B | qrcode B |',
  )
  console.log('| ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
  for (const { size, calls } of CASES) {
    const bytes = { ours: await verify('ours', size), qrcode: await verify('qrcode', size) }
    const names: Variant[] = ['ours', 'qrcode']
    const argsOf = (variant: Variant) => [size, calls[variant]]
    const timings = await timeInTurn<Variant, Timing>(import.meta.path, names, ROUNDS, argsOf)
    const ours = median(timings.ours.map(({ p50Ms }) => p50Ms))
    const oursP95 = median(timings.ours.map(({ p95Ms }) => p95Ms))
    const theirs = median(timings.qrcode.map(({ p50Ms }) => p50Ms))
    const times = [ours, oursP95, theirs].map((ms) => ms.toFixed(2))
    const row = [size, ...times, (theirs / ours).toFixed(0), bytes.ours, bytes.qrcode]
    console.log(`| ${row.join(' | ')} |`)
  }
}

/** Returns the bytes of the image. Throws unless it has that size and contains the text. */
async function verify(variant: Variant, size: number): Promise<number> {
  const png = await VARIANTS[variant](size)
  const { text, width, height } = await decodeQr(png, 'image/png')
  if (text !== TEXT || width !== size || height !== size) throw new Error(`${variant} is wrong`)
  return png.length
}

/** Also runs a fifth as many calls before, as warm-up. */
async function time(variant: Variant, size: number, calls: number): Promise<Timing> {
  const samples: number[] = []
  let bytes = 0
  for (let call = -Math.ceil(calls / 5); call < calls; call++) {
    const start = performance.now()
    bytes += (await VARIANTS[variant](size)).length
    if (call >= 0) samples.push(performance.now() - start)
  }
  if (bytes === 0) throw new Error('nothing was rendered')
  samples.sort((a, b) => a - b)
  return { p50Ms: median(samples), p95Ms: samples[Math.floor(samples.length * 0.95)] ?? 0 }
}
