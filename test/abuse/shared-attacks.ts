import { Database } from 'bun:sqlite'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { DAY } from '../../src/lib/clock.ts'
import { encodeSums } from '../../src/visits/parts.ts'
import { visitKey } from '../../src/visits/values.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { openBeside } from '../support/database.ts'
import { chessboardLogo, pngLogo, uploadLogo } from '../support/logos.ts'
import {
  type Attack,
  type Attacked,
  highest,
  longUrls,
  Member,
  median,
  p99,
  structure,
  timing,
} from './attacked.ts'
import { besides, isOk, members, PAUSE_MS, start } from './besides.ts'
import { sender } from './connection-attacks.ts'
import { fill } from './data-attacks.ts'

/** Attacks of a few accounts or networks on what all clients share. */

const KIB = 1024
const MIB = 1024 * KIB
export const unreadExports: Attack = {
  name: 'unread exports',
  about: 'eight exports of each of eight accounts that nobody reads, again and again',
  async run(program, { isShort }) {
    await using attacked = await start(program, { FREE_LINKS_MAX: '0' })
    const { victim, service, env } = attacked
    const attackers = await members(attacked, isShort ? 2 : 8, 'free')
    const urls = longUrls(isShort ? 500 : 2000, (i) => `${i}`.padEnd(8100, 'x'))
    for (const member of attackers) await fill(attacked, member, urls)
    const reader = await Member.create(program, env, 'reader@example.com', 'enterprise')
    await service.shorten(reader.key, 'https://example.com/reader')
    const urlsOfOthers = JSON.stringify({ urls: longUrls(20, (i) => `${i}`.padEnd(4000, 'y')) })
    const { cookie } = await attacked.signIn(victim, '192.0.2.9')
    const browse = (path: string) => service.fetch(path, { headers: { cookie } })
    const calls = [
      () => isOk(attacked.get('/api/list?limit=2', reader)),
      () => isOk(attacked.get('/api/list?limit=200', reader)),
      () => isOk(attacked.get('/api/export', reader)),
      () => isOk(attacked.post('/api/bulk-shorten', reader, urlsOfOthers), 201),
      () => isOk(browse('/app/links')),
      () => isOk(service.fetch('/docs/bundle.js')),
    ]
    const attack = async (isDone: () => boolean) => {
      const open = ({ key }: Member) => {
        const head = `GET /api/export HTTP/1.1\r\nHost: hop.test\r\nX-API-Key: ${key}\r\n\r\n`
        return sender(attacked.port, '127.0.0.1', head).pause()
      }
      const sockets: Socket[] = attackers.flatMap((member) =>
        Array.from({ length: 8 }, () => open(member)),
      )
      while (!isDone()) {
        await Bun.sleep(100)
        for (const [i, socket] of sockets.entries()) {
          // What was closed comes back.
          const member = attackers[Math.floor(i / 8)]
          if (socket.destroyed && member) sockets[i] = open(member)
        }
      }
      for (const socket of sockets) socket.destroy()
    }
    const { figures } = await besides(attacked, isShort ? 1500 : 15_000, { attack, calls })
    return figures
  },
}

export const logoImages: Attack = {
  name: 'logo images',
  about: 'the largest images with a logo, from two networks on three connections each',
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const { attacker, victim, service, path } = attacked
    const target = await service.shorten(attacker.key, 'https://example.com/target')
    const browsers: Visitor[] = []
    for (const member of [attacker, victim]) {
      const browser = await attacked.signIn(member, '192.0.2.9')
      const { status } = await uploadLogo(service, browser, pngLogo(300))
      if (status !== 303) throw new Error(`the logo is refused: ${status}`)
      browsers.push(browser)
    }
    const image = (code: string, size: number, from: string) =>
      service.fetch(`/api/qr${code}?logo=1&size=${size}`, { headers: { 'x-forwarded-for': from } })
    const { cookie = '' } = browsers[1] ?? {}
    const page = `/app/links${path}/qr.png?logo=1`
    const calls = [
      () => isOk(image(path, 512, '192.0.2.77')),
      () => isOk(service.fetch(page, { headers: { cookie } })),
    ]
    const attack = (isDone: () => boolean) =>
      Promise.all(
        [0, 1, 2, 3, 4, 5].map(async (n) => {
          const network = n % 2 === 0 ? '198.51.100' : '203.0.113'
          for (let i = 0; !isDone(); i++) {
            await isOk(image(`/${target}`, 2048, `${network}.${10 + (i % 5)}`))
          }
        }),
      )
    const { figures } = await besides(attacked, isShort ? 1500 : 8000, { attack, calls })
    return figures
  },
}

export const largeBodies: Attack = {
  name: 'large bodies',
  about: 'eight bodies of 8 MiB of two Pro accounts that never end, again and again',
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const { env } = attacked
    const attackers = await members(attacked, 2, 'pro')
    const other = await Member.create(program, env, 'other@example.com', 'enterprise')
    const free = attacked.victim
    const batch = (n: number) =>
      JSON.stringify({ urls: longUrls(30, (i) => `${n}/${i}`.padEnd(4000, 'z')) })
    let sent = 0
    const calls = [
      () => isOk(attacked.post('/api/bulk-shorten', other, batch(sent++)), 201),
      () => isOk(attacked.get('/api/list?limit=200', free)),
    ]
    const bytes = 8 * MIB
    const most = Buffer.alloc(bytes - 200, ' ')
    const attack = async (isDone: () => boolean) => {
      const send = async ({ key }: Member, at: number) => {
        const head = [
          'POST /api/bulk-shorten HTTP/1.1',
          'Host: hop.test',
          `X-API-Key: ${key}`,
          'Content-Type: application/json',
          `Content-Length: ${bytes}`,
        ]
        // One after the other: each fills what the ones before have left.
        await Bun.sleep(at * 200)
        while (!isDone()) {
          const socket = sender(attacked.port, '127.0.0.1', `${head.join('\r\n')}\r\n\r\n`)
          socket.resume().once('connect', () => socket.write(most))
          for (let tick = 0; tick < 18 && !isDone(); tick++) {
            await Bun.sleep(1500)
            if (!socket.destroyed) socket.write(' ')
          }
          socket.destroy()
        }
      }
      const both = [0, 1, 2, 3].flatMap(() => attackers)
      await Promise.all(both.map((member, at) => send(member, at)))
    }
    const { figures } = await besides(attacked, isShort ? 2000 : 15_000, { attack, calls })
    return figures
  },
}

const IMPORT = '/app/links/import'

async function upload({ service }: Attacked, browser: Visitor, csrf: string, csv: string) {
  const form = new FormData()
  form.append('csrf', csrf)
  form.append('file', new File([csv], 'links.csv'))
  const answer = await service.fetch(IMPORT, {
    method: 'POST',
    headers: { cookie: browser.cookie, 'sec-fetch-site': 'same-origin' },
    body: form,
  })
  await answer.arrayBuffer()
  return answer.status
}

/** Uploads one file and waits for the end of its check. Returns whether both succeeded. */
async function checkFile(attacked: Attacked, browser: Visitor, csrf: string, csv: string) {
  if ((await upload(attacked, browser, csrf, csv)) !== 303) return false
  for (;;) {
    const { text } = await browser.get(IMPORT)
    if (!text.includes('<progress')) return text.includes('Check of')
    await Bun.sleep(PAUSE_MS)
  }
}

export const importQueues: Attack = {
  name: 'import queues',
  about: 'files of 2.4 MB that four Free accounts upload again and again',
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const { victim, env } = attacked
    const printed = await attacked.command('account', 'setup-link')
    const link = /\/app\/\S+/.exec(printed)?.[0] ?? ''
    const owner = new Visitor(attacked.service, { from: '192.0.2.10' })
    await owner.post(link, { email: 'owner@example.com', password: PASSWORD })
    const ownerForm = await owner.get(IMPORT)
    const small = 'slug,url\nmine-1,https://example.com/mine\n'
    if (!(await checkFile(attacked, owner, ownerForm.csrf, small))) {
      throw new Error('the owner cannot check a file')
    }
    const line = (i: number) => `s${i},https://example.com/${i}\n`
    const rows = Array.from({ length: isShort ? 5000 : 62_000 }, (_, i) => line(i))
    const large = `slug,url\n${rows.join('')}`
    const attackers = await members(attacked, isShort ? 3 : 10, 'free')
    const browsers: Visitor[] = []
    for (const member of attackers) browsers.push(await attacked.signIn(member, '192.0.2.11'))
    const member = await attacked.signIn(victim, '192.0.2.12')
    const { csrf } = await member.get(IMPORT)
    const other = await Member.create(program, env, 'other@example.com', 'enterprise')
    const timeCheck = async () => {
      const begun = performance.now()
      const isFine = await checkFile(attacked, member, csrf, small)
      return isFine ? performance.now() - begun : undefined
    }
    const alone = (await timeCheck()) ?? 0
    const times: number[] = []
    const calls = [
      async () => {
        const ms = await timeCheck()
        if (ms !== undefined) times.push(ms)
        return ms !== undefined
      },
      () => isOk(attacked.get('/api/list?limit=20', other)),
    ]
    const attack = (isDone: () => boolean) =>
      Promise.all(
        browsers.map(async (browser) => {
          const form = await browser.get(IMPORT)
          while (!isDone()) {
            await upload(attacked, browser, form.csrf, large)
            await Bun.sleep(PAUSE_MS)
          }
        }),
      )
    const { figures } = await besides(attacked, isShort ? 2000 : 20_000, { attack, calls })
    const isKept = (await owner.get(IMPORT)).text.includes('Check of links.csv')
    return [
      ...figures,
      structure('imports of another member that were not checked', times.length > 0 ? 0 : 1, 0),
      timing('slowest check of one row, less its time alone', highest(times) - alone, 3000, 'ms'),
      structure('checked imports of the owner that are gone', isKept ? 0 : 1, 0),
    ]
  },
}

export const logoChecks: Attack = {
  name: 'logo checks',
  about: 'logos of three Free accounts that take longest to check, sixty a minute each',
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const { service, path } = attacked
    const browsers: Visitor[] = []
    for (const member of await members(attacked, 3, 'free')) {
      browsers.push(await attacked.signIn(member, '192.0.2.11'))
    }
    const logo = chessboardLogo(512)
    const image = () => service.fetch(`/api/qr${path}?size=256`)
    const alone = await attacked.timed(20, image)
    const calls = [() => isOk(image())]
    const attack = (isDone: () => boolean) =>
      Promise.all(
        browsers.map(async (browser) => {
          while (!isDone()) {
            await uploadLogo(service, browser, logo)
            await Bun.sleep(PAUSE_MS)
          }
        }),
      )
    const { others, figures } = await besides(attacked, isShort ? 1500 : 10_000, { attack, calls })
    return [
      ...figures,
      timing('images of others, beside alone', median(others.times) / median(alone), 4, '×'),
    ]
  },
}

export const sources: Attack = {
  name: 'sources',
  about: 'redirects of 100 links, each with a new utm_source of 64 letters',
  async run(program) {
    await using attacked = await start(program)
    const { service, attacker, dataDir } = attacked
    const count = 6000
    const urls = JSON.stringify({ urls: longUrls(100, (i) => `${i}`) })
    const made = await attacked.post('/api/bulk-shorten', attacker, urls)
    const { results } = (await made.json()) as { results: { code: string }[] }
    // Of a program, only its name is stored.
    const headers = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Firefox/130.0' }
    let failed = 0
    for (let i = 0; i < count; i++) {
      const source = `${i}x`.padEnd(64, 'abcdefgh')
      const code = results[i % results.length]?.code
      const visit = service.fetch(`/${code}?utm_source=${source}`, { headers })
      if (!(await isOk(visit, 302))) failed++
    }
    // Details are written every ten seconds, and at the end.
    await service.end('SIGTERM')
    using db = new Database(join(dataDir, 'hopcode.db'), { readonly: true })
    const sum = (sql: string) => db.query<{ sum: number }, []>(sql).get()?.sum ?? 0
    const bytes = sum('SELECT sum(length(parts)) AS sum FROM hit_days')
    const hits = sum('SELECT sum(count) AS sum FROM hits')
    return [
      structure('redirects that failed', failed, 0),
      structure('hits that were not counted', count - hits, 0),
      structure('bytes of details per hit', bytes / count, 30),
    ]
  },
}

const DAYS = 400
const firstDay = () => Math.floor(Date.now() / DAY) - DAYS + 1

/** A row as large as that of an account can be. */
function fullRow(): Uint8Array {
  const counts = new Map(
    Array.from({ length: 500 }, (_, i) => [visitKey('referrer', `${i}`.padEnd(64, 'r')), i + 2]),
  )
  return encodeSums({ known: 200_000, observed: 200_000, counts })
}

export const longRanges: Attack = {
  name: 'long ranges',
  about: 'details of 400 days of a full account, on eight connections of its key',
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const { attacker, victim, env, dataDir } = attacked
    const first = firstDay()
    const reader = await Member.create(program, env, 'reader@example.com', 'enterprise')
    {
      using db = openBeside(dataDir)
      const { id = 0 } =
        db
          .query<{ id: number }, [string]>('SELECT id FROM accounts WHERE name = ?')
          .get(attacker.email) ?? {}
      const row = fullRow()
      const add = db.query(
        'INSERT INTO hit_days (scope, id, day, count, parts) VALUES (1, ?, ?, 0, ?)',
      )
      db.transaction(() => {
        for (let day = 0; day < DAYS; day++) add.run(id, first + day, row)
      })()
    }
    await attacked.command('account', 'set-plan', '--email', attacker.email, '--plan', 'enterprise')
    const list = (member: Member) => () => isOk(attacked.get('/api/list?limit=20', member))
    const alone = await attacked.timed(50, () => attacked.get('/api/list?limit=20', reader))
    const from = new Date(first * DAY).toISOString().slice(0, 10)
    let read = 0
    let closed = 0
    const statuses = [200, 503]
    const attack = (isDone: () => boolean) =>
      Promise.all(
        Array.from({ length: isShort ? 3 : 8 }, async () => {
          while (!isDone()) {
            const answer = await attacked
              .get(`/api/visits?from=${from}`, attacker)
              .catch(() => null)
            if (!answer || !statuses.includes(answer.status)) closed++
            else if (answer.status === 200) read++
            await answer?.arrayBuffer()
          }
        }),
      )
    const calls = [list(reader), list(victim)]
    const { others, figures } = await besides(attacked, isShort ? 1500 : 8000, { attack, calls })
    return [
      ...figures,
      structure('ranges that were not read', read > 0 ? 0 : 1, 0),
      structure('ranges without an answer', closed, 0),
      timing('lists of others, beside alone', median(others.times) / median(alone), 5, '×'),
      timing('p99 of lists of others', p99(others.times), 50, 'ms'),
    ]
  },
}
