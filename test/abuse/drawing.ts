import { PNG } from 'pngjs'
import type { Visitor } from '../support/dashboard.ts'
import { uploadLogo } from '../support/logos.ts'
import {
  type Attack,
  Attacked,
  type Figure,
  highest,
  type Member,
  median,
  p99,
  structure,
  timing,
} from './attacked.ts'
import { members, start } from './besides.ts'
import { sender } from './connection-attacks.ts'
import type { Observed } from './probe.ts'

/** Attacks on the one thread that draws. */

/** As large as an image may be, and drawn anew for each margin. */
const heavy = (code: string, at: number, from?: string) =>
  get(`/api/qr/${code}?size=2048&level=H&caption=${'%40'.repeat(40)}&margin=${at % 17}`, from)

/** From a network of its own for each part, because its reads are limited, too. */
const small = (code: string, part: number) =>
  get(`/api/qr/${code}?size=256`, `2001:db8:ff:${part}::1`)

const get = (path: string, from?: string) =>
  `GET ${path} HTTP/1.1\r\nHost: hop.test\r\n${from ? `X-Forwarded-For: ${from}\r\n` : ''}\r\n`

/** Sends a request on a connection of its own. Resolves with the status; 0: no answer. */
function ask(port: number, request: string, localAddress = PROXY): Promise<number> {
  const socket = sender(port, localAddress, request)
  return new Promise((resolve) => {
    socket.once('data', (chunk) => {
      socket.destroy()
      resolve(Number(chunk.toString('latin1').split(' ', 2)[1]))
    })
    socket.once('close', () => resolve(0))
  })
}

const PROXY = '127.0.0.1'
const IMAGES = 150
const CONNECTIONS = 100

/**
 * `networks` at once, each with `IMAGES`, or one address; small images of others meanwhile. Opening
 * so many connections at once takes time of the machine, too: the same connections without
 * anything to draw are the control.
 */
async function flood(attacked: Attacked, networks: number): Promise<Figure[]> {
  const name = networks === 0 ? `one address × ${CONNECTIONS}` : `${networks} networks × ${IMAGES}`
  const count = networks === 0 ? CONNECTIONS : networks * IMAGES
  const control = await send(attacked, { networks, count, drawn: 'UNKNOWN' })
  const beside = await send(attacked, { networks, count, drawn: attacked.path.slice(1) })
  const [images, redirects] = [beside.images - control.images, beside.redirects - control.redirects]
  return [
    structure(`${name}: small images of others that were refused`, beside.refused, 0),
    structure(`${name}: redirects that failed`, beside.failed, 0),
    structure(
      `${name}: large images drawn before a small one that came later`,
      beside.before,
      count / 5,
    ),
    timing(
      `${name}: p99 of small images of another network, beyond the control`,
      images,
      300,
      'ms',
    ),
    timing(`${name}: slowest redirect, beyond the control`, redirects, 50, 'ms'),
  ]
}

interface Flood {
  networks: number
  count: number
  /** Code of the images. */
  drawn: string
}

async function send(attacked: Attacked, { networks, count, drawn: code }: Flood) {
  const { port, path } = attacked
  const isControl = code !== path.slice(1)
  const other = small(path.slice(1), 2 * networks + (isControl ? 1 : 0))
  const statuses: number[] = []
  let before = 0
  const attack = async () => {
    const requests = Array.from({ length: count }, async (_, at) => {
      const site = (10 + (at % networks)).toString(16)
      const request = networks ? heavy(code, at, `2001:db8:${site}:1::${at}`) : heavy(code, at)
      statuses.push(await ask(port, request, networks ? PROXY : '127.100.0.1'))
    })
    while (statuses.length < 3) await Bun.sleep(5)
    const drawn = drawnOf(statuses)
    await ask(port, other)
    before = drawnOf(statuses) - drawn
    await Promise.all(requests)
  }
  let others: Observed | undefined
  const observed = await attacked.observe(async () => {
    const image = { request: other, status: 200 }
    others = await attacked.observe(attack, image)
  })
  const { latencies = [], failed = 1 } = others ?? {}
  return {
    before,
    refused: failed,
    failed: observed.failed,
    images: p99(latencies),
    redirects: highest(observed.latencies),
  }
}

const drawnOf = (statuses: readonly number[]) => statuses.filter((status) => status === 200).length

export const drawnImages: Attack = {
  name: 'drawn images',
  about: 'the largest images with a caption, all at once, by networks without an account',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program)
    const figures: Figure[] = []
    for (const networks of isShort ? [2] : [2, 8, 0]) {
      figures.push(...(await flood(attacked, networks)))
    }
    return figures
  },
}

const LINKS = 500
const PAGE =
  '/app/print/page.svg?columns=10&rows=18&margin=5&gap=0&labels=a4&sent=1&title=1&address=1' +
  `&marks=1&caption=${'%40'.repeat(40)}`

/** A logo of 49 kB that decoders read through. */
function noisyLogo(): Uint8Array<ArrayBuffer> {
  const image = new PNG({ width: 140, height: 120 })
  for (let at = 0, seed = 1; at < image.data.length; at++) {
    seed = (seed * 48_271) % 2_147_483_647
    image.data[at] = at % 4 === 3 ? 255 : seed % 256
  }
  return new Uint8Array(PNG.sync.write(image))
}

interface Printer {
  browser: Visitor
  /** The number of a preset with a logo. */
  preset: string
}

async function printer(attacked: Attacked, member: Member, links: number): Promise<Printer> {
  const { service } = attacked
  const lines = Array.from({ length: links }, (_, n) =>
    JSON.stringify({
      code: `P${member.email.replace(/\W/g, '').slice(0, 6)}${n}`.toUpperCase(),
      url: `https://example.com/${n}`,
      title: '@'.repeat(195) + n,
    }),
  )
  for (let at = 0; at < links; at += 100) {
    const made = await service.fetch('/api/import', {
      method: 'POST',
      headers: { 'x-api-key': member.key, 'content-type': 'application/x-ndjson' },
      body: lines.slice(at, at + 100).join('\n'),
    })
    if (made.status !== 200) throw new Error(`no links: ${await made.text()}`)
  }
  const browser = await attacked.signIn(member, '192.0.2.30')
  const logo = await uploadLogo(service, browser, noisyLogo())
  const sent = { name: 'logo', logo: '1' }
  const saved = await browser.post('/app/qr/presets', sent, { from: '/app/qr' })
  const { text } = await browser.get('/app/print')
  const preset = /<option value="(\d+)"[^>]*>logo/.exec(text)?.[1]
  if (!preset) throw new Error(`no preset: ${logo.status} ${logo.location} ${saved.status}`)
  return { browser, preset }
}

/** The accounts read `path` on `each` connections; small images of others meanwhile. */
async function loop(
  attacked: Attacked,
  ms: number,
  { printers, each, path }: { printers: Printer[]; each: number; path: (of: Printer) => string },
) {
  let isDone = false
  let failed = 0
  let bytes = 0
  const attack = printers.flatMap((one) =>
    Array.from({ length: each }, async () => {
      const headers = { cookie: one.browser.cookie }
      while (!isDone) {
        const answer = await attacked.service.fetch(path(one), { headers })
        bytes = Math.max(bytes, (await answer.arrayBuffer()).byteLength)
        if (answer.status !== 200) failed++
      }
    }),
  )
  const request = `GET /api/qr${attacked.path}?size=256 HTTP/1.1\r\nHost: hop.test\r\n\r\n`
  const observed = await attacked.observe(() => Bun.sleep(ms), { request, status: 200 })
  isDone = true
  await Promise.all(attack)
  return { ...observed, bytes, refused: failed }
}

export const sheets: Attack = {
  name: 'sheets',
  about: `pages of 180 labels that accounts with ${LINKS} links read without a pause`,
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const accounts = await members(attacked, isShort ? 2 : 8, 'free')
    const printers: Printer[] = []
    for (const one of accounts) printers.push(await printer(attacked, one, isShort ? 180 : LINKS))
    const figures: Figure[] = []
    const plain = () => PAGE
    const withLogo = ({ preset }: Printer) => `${PAGE}&preset=${preset}`
    const ways = [
      { name: '4 accounts', count: 4, each: 1, path: plain },
      { name: '2 accounts × 4 with a logo', count: 2, each: 4, path: withLogo },
      { name: '8 accounts × 2 with a logo', count: 8, each: 2, path: withLogo },
    ]
    const ms = isShort ? 1000 : 6000
    for (const { name, count, each, path } of isShort ? ways.slice(1, 2) : ways) {
      const some = { printers: printers.slice(0, count), each }
      const control = await loop(attacked, ms, { ...some, path: () => '/app/links' })
      const beside = await loop(attacked, ms, { ...some, path })
      const alone = median(control.latencies)
      const times = `p50 of small images of others, beside ${alone.toFixed(1)} ms`
      figures.push(
        structure(`${name}: small images of others that were refused`, beside.failed, 0),
        structure(`${name}: sheets that were refused`, beside.refused, 0),
        structure(`${name}: bytes of a sheet`, beside.bytes, 2 * 1024 * 1024),
        timing(`${name}: ${times}`, median(beside.latencies) / alone, 2, '×'),
        timing(`${name}: p99 of them`, p99(beside.latencies), 300, 'ms'),
        timing(`${name}: memory growth`, beside.residentMost - beside.residentBefore, 128, 'MiB'),
      )
    }
    return figures
  },
}
