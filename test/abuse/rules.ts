import type { Socket } from 'node:net'
import { mainThreadSecondsOf } from '../../bench/lib/process-stats.ts'
import { type Attack, Attacked, type Figure, highest, p99, structure, timing } from './attacked.ts'
import { sender } from './connection-attacks.ts'

const RULES = 20
const PARAMETERS = 4
/** Characters of the URL of a rule, so that the rules together have nearly 16 KiB. */
const URL_LENGTH = 500

/** Every condition is compared before the last one fails. */
const RULE = {
  os: ['linux'],
  language: ['xa', 'xb', 'xc', 'xd', 'xe', 'xf', 'xg', 'xh', 'xi', 'de'],
  query: Object.fromEntries(Array.from({ length: PARAMETERS }, (_, n) => [`p${n}`, true])),
  days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
  zone: 'Australia/Lord_Howe',
}

const HEADERS = {
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0',
  'accept-language': `${Array.from({ length: 500 }, (_, n) => `y${n}`).join()},de`,
}

async function setRules({ service, attacker }: Attacked, code: string, destinations: object[]) {
  const { status } = await service.fetch(`/api/links/${code}`, {
    method: 'PATCH',
    headers: { 'x-api-key': attacker.key, 'content-type': 'application/json' },
    body: JSON.stringify({ destinations }),
  })
  return status
}

/** Follows a link with as many rules as it may have, of which none matches. */
export const rules: Attack = {
  name: 'rules',
  about: 'visits of a link with 16 KiB of destinations by rule, none of which matches',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program)
    const { attacker, service } = attacked
    const code = await service.shorten(attacker.key, 'https://example.com/none')
    const ruled = (count: number) =>
      Array.from({ length: count }, (_, n) => ({
        when: { ...RULE, query: { ...RULE.query, last: `none ${n}` } },
        url: `https://example.com/${n}/`.padEnd(URL_LENGTH, 'x'),
      }))
    const tooMany = await setRules(attacked, code, ruled(RULES + 1))
    const accepted = await setRules(attacked, code, ruled(RULES))
    if (accepted !== 200) throw new Error(`the rules were not accepted: ${accepted}`)
    const query = Array.from({ length: 100 }, (_, n) => `q${n}=%62`).join('&')
    const present = Object.keys(RULE.query).join('&')
    const path = `/${code}?${query}&${present}&last=other`
    let asked = 0
    let wrong = 0
    const controlBefore = mainThreadSecondsOf(service.pid)
    const observed = await attacked.observe(async () => {
      const until = performance.now() + (isShort ? 1000 : 8000)
      const ask = async () => {
        while (performance.now() < until) {
          const { headers } = await service.fetch(path, { headers: HEADERS })
          if (headers.get('location') !== 'https://example.com/none') wrong++
          asked++
        }
      }
      await Promise.all([ask(), ask(), ask(), ask()])
    })
    const controlMs = ((mainThreadSecondsOf(service.pid) - controlBefore) * 1000) / asked
    const { latencies, failed } = observed
    return [
      structure('status of more rules', tooMany, 400),
      structure('visits that were led elsewhere', wrong, 0),
      structure('redirects of others that failed', failed, 0),
      timing('time of the control thread per visit', controlMs, 0.2, 'ms'),
      timing('p99 of redirects of others meanwhile', p99(latencies), 50, 'ms'),
    ]
  },
}

/** Links that read a query, by the rules that they have. */
const READERS = {
  'one query rule': [{ when: { query: { v: '2' } }, url: 'https://example.com/two' }],
  '20 rules of 5 conditions': Array.from({ length: RULES }, (_, n) => ({
    when: { ...RULE, query: { a: '', v: String(n) } },
    url: `https://example.com/${n}`,
  })),
}
/** Addresses, and connections of each. */
const SENDERS = [
  [1, 64],
  [8, 8],
] as const
const PIPELINED = 40
/** Characters of a request: nearly the longest head that a redirect thread reads. */
const REQUEST_LENGTH = 7500

/** Pipelines requests with the longest queries, on all connections at once, again and again. */
export const pipelines: Attack = {
  name: 'pipelines',
  about: '40 pipelined requests of 7.5 kB on 64 connections, for links that read the query',
  async run(program, { isShort }) {
    const figures: Figure[] = []
    for (const [rule, destinations] of Object.entries(READERS)) {
      for (const [addresses, connections] of SENDERS) {
        // Nobody here is a trusted proxy.
        await using attacked = await Attacked.start(program, { TRUSTED_PROXIES: '192.0.2.1' })
        const code = await attacked.service.shorten(
          attacked.attacker.key,
          'https://example.com/none',
        )
        const status = await setRules(attacked, code, destinations)
        if (status !== 200) throw new Error(`the rules were not accepted: ${status}`)
        const headers = Object.entries({ host: 'hop.test', ...HEADERS, 'accept-language': 'de' })
        const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
        const query = 'a&'.repeat((REQUEST_LENGTH - lines.length) / 2)
        const burst = `GET /${code}?${query} HTTP/1.1\r\n${lines}\r\n`.repeat(PIPELINED)
        const { latencies, failed } = await attacked.observe(async () => {
          for (let round = 0; round < (isShort ? 1 : 6); round++) {
            const sockets: Socket[] = []
            for (let i = 0; i < addresses * connections; i++) {
              sockets.push(sender(attacked.port, `127.0.1.${1 + (i % addresses)}`, burst).resume())
            }
            await Bun.sleep(isShort ? 500 : 1500)
            for (const socket of sockets) socket.destroy()
          }
        })
        const from = `${rule}, ${addresses} × ${connections} connections`
        figures.push(
          structure(`redirects of others that failed, ${from}`, failed, 0),
          timing(`slowest redirect of others, ${from}`, highest(latencies), 50, 'ms'),
        )
      }
    }
    return figures
  },
}
