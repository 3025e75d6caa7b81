import { Conversation } from '../support/conversation.ts'
import {
  type Attack,
  Attacked,
  type Figure,
  highest,
  type Member,
  structure,
  timing,
} from './attacked.ts'
import { hostileJson, type JsonKind, longestUrls, oneCharacterCsv } from './bodies.ts'
import { sender } from './connection-attacks.ts'

/** Attacks with bytes: bodies that are hard to parse, never end, or are never read. */

const MIB = 1024 * 1024
/** Nearly the largest body that is read at all. */
const BULK_BYTES = Math.floor(7.9 * MIB)
const UNLIMITED = { ANONYMOUS_READS_PER_MINUTE: '0' }

/** The shapes that cost a parser most. */
const SHAPES: readonly JsonKind[] = [
  'distinct names',
  'empty objects',
  'nested lists',
  'one string',
  'escapes',
]

export const bodies: Attack = {
  name: 'bodies',
  about: 'JSON in hostile shapes on every write endpoint, four at once',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, UNLIMITED)
    // As many requests as the Free plan has in a minute.
    const sizes = isShort ? [60 * 1024, MIB] : [60 * 1024, BULK_BYTES, 15 * MIB]
    const statuses: number[] = []
    // The code that reads bodies is compiled as it is first used, and takes memory once.
    for (const _ of Array(20))
      await attacked.post('/api/bulk-shorten', attacked.victim, '{"urls":[1]}')
    await fillWithLongLinks(attacked, attacked.victim, 300)
    const attack = async () => {
      for (const bytes of sizes) {
        for (const shape of SHAPES) {
          const path = bytes < 64 * 1024 ? '/api/shorten' : '/api/bulk-shorten'
          const sent = Array.from({ length: 4 }, () =>
            attacked.post(path, attacked.attacker, hostileJson(shape, bytes)),
          )
          statuses.push(...(await Promise.all(sent)).map(({ status }) => status))
        }
      }
    }
    const [observed, api] = await attacked.observeBoth(attack)
    const served = statuses.filter((status) => ![400, 413, 415, 422, 503].includes(status))
    return [
      structure('bodies that were not refused', served.length, 0),
      structure('redirects that failed', observed.failed, 0),
      timing('slowest redirect', highest(observed.latencies), 50, 'ms'),
      timing('pause of the API', highest(api.latencies), 50, 'ms'),
      // Of the four largest bodies, 45 while they arrive.
      timing('memory growth', observed.residentMost - observed.residentBefore, 100, 'MiB'),
    ]
  },
}

/** Links whose list is as long as an answer can be. */
async function fillWithLongLinks(attacked: Attacked, member: Member, count: number): Promise<void> {
  const urls = longestUrls(count)
  for (let at = 0; at < count; at += 100) {
    const body = JSON.stringify({ urls: urls.slice(at, at + 100) })
    const { status } = await attacked.post('/api/bulk-shorten', member, body)
    if (status !== 201) throw new Error(`the links cannot be created: ${status}`)
  }
}

interface Parked {
  [Symbol.dispose](): void
}

/** Sends the head and most of a body, and then nothing more. */
async function stalledBody({ service, attacker }: Attacked, bytes: number): Promise<Parked> {
  const client = await Conversation.open(service.url)
  const head = [
    'POST /api/bulk-shorten HTTP/1.1',
    'Host: hop.test',
    `X-API-Key: ${attacker.key}`,
    'Content-Type: application/json',
    `Content-Length: ${bytes}`,
  ]
  client.send(`${head.join('\r\n')}\r\n\r\n`)
  client.send(Buffer.alloc(bytes - 100, ' '))
  return client
}

/** Asks for a list and reads nothing of it. */
async function unreadList({ port, attacker }: Attacked): Promise<Parked> {
  const head = ['GET /api/list?limit=200 HTTP/1.1', 'Host: hop.test', `X-API-Key: ${attacker.key}`]
  const socket = sender(port, '127.0.0.1', `${head.join('\r\n')}\r\n\r\n`).pause()
  return { [Symbol.dispose]: () => socket.destroy() }
}

export const parked: Attack = {
  name: 'parked',
  about: '30 stalled bodies, or 60 answers that nobody reads',
  async run(program, { isShort }) {
    const figures: Figure[] = []
    const park = async (
      name: string,
      count: number,
      open: (attacked: Attacked) => Promise<Parked>,
    ) => {
      await using attacked = await Attacked.start(program, UNLIMITED)
      await fillWithLongLinks(attacked, attacked.attacker, isShort ? 100 : 200)
      const observed = await attacked.observe(async () => {
        const all = await Promise.all(
          Array.from({ length: isShort ? 8 : count }, () => open(attacked)),
        )
        await Bun.sleep(isShort ? 700 : 5500)
        for (const one of all) one[Symbol.dispose]()
      })
      const { status } = await attacked.get('/api/list', attacked.victim)
      const grown = observed.residentMost - observed.residentBefore
      figures.push(
        timing(`memory growth by ${name}`, grown, 150, 'MiB'),
        structure(`redirects that failed beside ${name}`, observed.failed, 0),
        structure(`status of another account’s list after ${name}`, status, 200),
      )
    }
    await park('stalled bodies of 7.9 MiB', 30, (attacked) => stalledBody(attacked, BULK_BYTES))
    await park('unread lists', 60, unreadList)
    return figures
  },
}

export const csv: Attack = {
  name: 'csv',
  about: 'CSV files of one-character lines, 8 MiB and as large as the plan allows',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, UNLIMITED)
    const browser = await attacked.signIn(attacked.attacker, '192.0.2.7')
    const { csrf } = await browser.get('/app/links/bulk')
    const { cookie } = browser
    const figures: Figure[] = []
    for (const mebibytes of isShort ? [1] : [2, 7.9]) {
      const form = new FormData()
      form.append('csrf', csrf)
      const lines = oneCharacterCsv(mebibytes * MIB)
      form.append('file', new File([lines], 'links.csv'))
      let status = 0
      let taken = 0
      const observed = await attacked.observe(async () => {
        const start = performance.now()
        const answer = await attacked.service.fetch('/app/links/bulk', {
          method: 'POST',
          headers: { cookie, 'sec-fetch-site': 'same-origin' },
          body: form,
        })
        await answer.arrayBuffer()
        taken = performance.now() - start
        status = answer.status
      })
      const grown = observed.residentMost - observed.residentBefore
      const isRefused = status === 413 || status === 422
      figures.push(
        structure(`files of ${mebibytes} MiB that were taken`, isRefused ? 0 : 1, 0),
        timing(`answer to ${mebibytes} MiB`, taken, 200, 'ms'),
        timing(`memory growth by ${mebibytes} MiB`, grown, 32, 'MiB'),
      )
    }
    return figures
  },
}
