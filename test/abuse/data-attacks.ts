import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'
import { hostileFiles } from '../support/imported.ts'
import {
  type Attack,
  Attacked,
  highest,
  longUrls,
  Member,
  median,
  structure,
  timing,
} from './attacked.ts'
import { randomUrls, repeatedUrls } from './search.ts'

/** Attacks with what an account stores: searches, long URLs, large pages. */

const UNLIMITED = { ANONYMOUS_READS_PER_MINUTE: '0' }
const URL_LENGTH = 8150

/** Links of an account, made as fast as the largest plan allows. */
export async function fill(
  attacked: Attacked,
  { key, email }: Member,
  urls: string[],
): Promise<void> {
  await attacked.command('account', 'set-plan', '--email', email, '--plan', 'enterprise')
  for (let at = 0; at < urls.length; at += 1000) {
    const body = JSON.stringify({ urls: urls.slice(at, at + 1000) })
    const { status } = await attacked.service.fetch('/api/bulk-shorten', {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body,
    })
    if (status !== 201) throw new Error(`the links cannot be made: ${status}`)
  }
  await attacked.command('account', 'set-plan', '--email', email, '--plan', 'free')
}

const TEXTS = [
  'a',
  'aa',
  'aaa',
  'a'.repeat(200),
  'https://x.example/',
  'zzz',
  'x.example/42',
  `${'ab'.repeat(60)}`,
]

export const search: Attack = {
  name: 'search',
  about: 'searches for texts of every length over long and many URLs, four at once, and at a stop',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, UNLIMITED)
    const { attacker, victim, service } = attacked
    const links = [
      ...repeatedUrls(100),
      ...randomUrls(100),
      ...longUrls(isShort ? 500 : 90_000, (i) => `page-${i * 7919}?utm_source=flyer`),
    ]
    await fill(attacked, attacker, links)
    await fill(
      attacked,
      victim,
      longUrls(100, (i) => `mine-${i}`),
    )
    const ask = (text: string) =>
      attacked.get(`/api/list?limit=5&search=${encodeURIComponent(text)}`, attacker)
    const list = () => attacked.get('/api/list', victim)
    const alone = await attacked.timed(200, list)

    const taken: number[] = []
    const lists: number[] = []
    const statuses: number[] = []
    let isDone = false
    const beside = (async () => {
      while (!isDone) lists.push(...(await attacked.timed(1, list)))
    })()
    for (const text of isShort ? TEXTS.slice(0, 4) : TEXTS) {
      const four = Array.from({ length: 4 }, async () => {
        const start = performance.now()
        const answer = await ask(text)
        statuses.push(answer.status)
        await answer.arrayBuffer()
        taken.push(performance.now() - start)
      })
      await Promise.all(four)
      await Bun.sleep(20)
    }
    isDone = true
    await beside
    lists.sort((a, b) => a - b)
    const tooLong = (await ask('a'.repeat(201))).status

    const running = ['a'.repeat(200), 'aaa'].map((text) => ask(text).catch(() => undefined))
    await Bun.sleep(5)
    const start = performance.now()
    const code = await service.end('SIGTERM')
    const stopped = performance.now() - start
    await Promise.all(running)
    return [
      structure('searches that failed', statuses.filter((status) => status !== 200).length, 0),
      structure('status of a text of 201 characters', tooLong, 400),
      structure('exit code with two searches under way', code === 0 ? 0 : 1, 0),
      timing('time to exit', stopped / 1000, 10, 's'),
      timing('slowest search', highest(taken), 200, 'ms'),
      timing('lists of another account, beside alone', median(lists) / median(alone), 2, '×'),
      timing('slowest list of another account', highest(lists), 100, 'ms'),
    ]
  },
}

export const bulks: Attack = {
  name: 'bulks',
  about: 'bulks of the longest URLs, as many as the rate limit of Free allows, then of Pro',
  async run(program, { isShort }) {
    const quota = isShort ? { FREE_LINKS_MAX: '150' } : {}
    // What a create costs is the disk's work: in memory an attack has nothing to hold up.
    await using attacked = await Attacked.start(
      program,
      { ...UNLIMITED, ...quota },
      [],
      temporaryFolder(),
    )
    const { attacker, victim, service, env } = attacked
    const [before, during] = [
      await Member.create(program, env, 'before@example.com', 'enterprise'),
      await Member.create(program, env, 'during@example.com', 'enterprise'),
    ]
    // Made before, because this process shares the processors with the service.
    const bodies = Array.from({ length: isShort ? 3 : 60 }, (_, i) =>
      JSON.stringify({ urls: randomUrls(100, i) }),
    )
    const bytesBefore = attacked.databaseBytes()
    const alone = await attacked.observe(
      () => Bun.sleep(isShort ? 200 : 2000),
      attacked.create(before),
    )
    const statuses: number[] = []
    const beside = await attacked.observe(async () => {
      for (const body of bodies) {
        const answer = await attacked.post('/api/bulk-shorten', attacker, body)
        statuses.push(answer.status)
        await answer.arrayBuffer()
      }
    }, attacked.create(during))
    const account = await attacked.get('/api/list?limit=1', attacker)
    const { total } = (await account.json()) as { total: number }
    const pro = await Member.create(program, env, 'pro@example.com', 'pro')
    const large = Array.from({ length: isShort ? 2 : 12 }, (_, i) =>
      JSON.stringify({ urls: randomUrls(1000, 1000 + i) }),
    )
    const [visits, api] = await attacked.observeBoth(async () => {
      const two = [large.slice(0, large.length / 2), large.slice(large.length / 2)]
      await Promise.all(
        two.map(async (some) => {
          for (const body of some)
            await (await attacked.post('/api/bulk-shorten', pro, body)).bytes()
        }),
      )
    })
    const victimStatus = (await attacked.get('/api/list', victim)).status
    await service.end('SIGTERM')
    const grown = attacked.databaseBytes() - bytesBefore
    const urlBytes = (total + 1000 * large.length) * URL_LENGTH
    return [
      ...(isShort ? [structure('links stored with a quota of 150', total, 150)] : []),
      ...(isShort ? [structure('bulks beyond the quota', statuses.at(-1) ?? 0, 422)] : []),
      structure('status of another account’s list', victimStatus, 200),
      // A fixed part of the file weighs more than a few links.
      ...(isShort
        ? []
        : [structure('database growth, of the URLs’ bytes', grown / urlBytes, 3, '×')]),
      structure('creates of another account that failed', beside.failed, 0),
      timing(
        'creates of another account, beside alone',
        median(beside.latencies) / median(alone.latencies),
        3,
        '×',
      ),
      timing('slowest redirect beside bulks of 8 MB', highest(visits.latencies), 50, 'ms'),
      timing('pause of the API beside bulks of 8 MB', highest(api.latencies), 50, 'ms'),
    ]
  },
}

/** Uploads one file after the other, each when the last one was read. Counts those accepted. */
async function uploadAll(
  attacked: Attacked,
  files: ReturnType<typeof hostileFiles>,
): Promise<number> {
  const path = '/app/links/import'
  const browser = await attacked.signIn(attacked.attacker, '192.0.2.7')
  const { csrf } = await browser.get(path)
  const headers = { cookie: browser.cookie, 'sec-fetch-site': 'same-origin' }
  let taken = 0
  for (const [name, content] of files) {
    const form = new FormData()
    form.append('csrf', csrf)
    form.append('file', new File([content], name))
    const { status } = await attacked.service.fetch(path, { method: 'POST', headers, body: form })
    if (status !== 303) throw new Error(`the file of ${name} cannot be uploaded: ${status}`)
    let page = '<progress'
    for (; page.includes('<progress'); await Bun.sleep(200)) page = (await browser.get(path)).text
    if (!page.includes('notice bad')) taken++
  }
  return taken
}

export const imports: Attack = {
  name: 'imports',
  about: 'an import of 200,000 links, and files that have no row',
  async run(program, { isShort }) {
    const rows = isShort ? 500 : 200_000
    const folder = temporaryFolder()
    await using attacked = await Attacked.start(program, { FREE_LINKS_MAX: '0' }, [], folder)
    const { attacker, env } = attacked
    const [before, during, last] = [
      await Member.create(program, env, 'before@example.com', 'enterprise'),
      await Member.create(program, env, 'during@example.com', 'enterprise'),
      await Member.create(program, env, 'last@example.com', 'enterprise'),
    ]
    using files = temporaryFolder()
    const lines = Array.from({ length: rows }, (_, n) => `row-${n},https://shop.example/${n}\n`)
    const halves = [lines.slice(0, rows / 2), lines.slice(rows / 2)].map((half, at) => {
      const file = join(files.path, `${at}.csv`)
      writeFileSync(file, `slug,url\n${half.join('')}`)
      return file
    })
    const importHalf = async (at: number) => {
      const words = ['import', 'csv', halves[at] ?? '', '--account', attacker.email]
      await attacked.command(...words)
    }
    const alone = await attacked.observe(
      () => Bun.sleep(isShort ? 200 : 2000),
      attacked.create(before),
    )
    const visits = await attacked.observe(() => importHalf(0))
    const creates = await attacked.observe(() => importHalf(1), attacked.create(during))
    const list = await attacked.get('/api/list?limit=1', attacker)
    const { total } = (await list.json()) as { total: number }
    const hostile = hostileFiles(2_300_000)
    let taken = 0
    const beside = await attacked.observe(async () => {
      taken = await uploadAll(attacked, hostile)
    }, attacked.create(last))
    const stoppedAt = performance.now()
    const code = await attacked.service.end('SIGTERM')
    return [
      structure('files without a row that were taken', taken, 0),
      structure('creates beside them that failed', beside.failed, 0),
      structure('exit code after them', code === 0 ? 0 : 1, 0),
      timing('time to exit', (performance.now() - stoppedAt) / 1000, 10, 's'),
      timing(
        'creates beside files without a row, beside alone',
        median(beside.latencies) / median(alone.latencies),
        3,
        '×',
      ),
      timing('memory growth by them', beside.residentMost - beside.residentBefore, 100, 'MiB'),
      structure('links that were not imported', rows - total, 0),
      structure('redirects that failed', visits.failed, 0),
      structure('creates of another account that failed', creates.failed, 0),
      timing('slowest redirect', highest(visits.latencies), 50, 'ms'),
      timing(
        'creates of another account, beside alone',
        median(creates.latencies) / median(alone.latencies),
        3,
        '×',
      ),
      timing('memory growth', visits.residentMost - visits.residentBefore, 100, 'MiB'),
    ]
  },
}

export const pages: Attack = {
  name: 'pages',
  about: 'dashboard pages full of the longest URLs, as fast as possible',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, UNLIMITED)
    const { attacker } = attacked
    // The newest are listed: those of 8,150 characters where so long an encoded URL is accepted.
    for (const length of [890, URL_LENGTH]) {
      const urls = longUrls(50, (i) => `${i}${'漢'.repeat(length)}`)
      await attacked.post('/api/bulk-shorten', attacker, JSON.stringify({ urls }))
    }
    const browser = await attacked.signIn(attacker, '192.0.2.7')
    const { cookie } = browser
    const ask = (path: string) => attacked.service.fetch(path, { headers: { cookie } })
    const quiet = await attacked.observe(() => Bun.sleep(isShort ? 200 : 2000))
    let served = 0
    let largest = 0
    let limited = 0
    const paths = ['/app/links', '/app/links?q=example', '/app/analytics', '/app/account']
    const until = performance.now() + (isShort ? 2000 : 10_000)
    const load = async () => {
      for (let i = 0; performance.now() < until; i++) {
        const answer = await ask(paths[i % paths.length] ?? '/app/links')
        const bytes = (await answer.arrayBuffer()).byteLength
        if (answer.status === 429) limited++
        else served++
        largest = Math.max(largest, bytes)
        if (isShort && limited > 0) return
      }
    }
    const beside = await attacked.observe(async () => {
      await Promise.all(Array.from({ length: 6 }, load))
    })
    return [
      structure('largest page', largest / 1000, 200, 'kB'),
      structure('pages in a minute', served, isShort ? Number.MAX_SAFE_INTEGER : 1200),
      structure('redirects that failed', beside.failed, 0),
      timing('redirects, beside alone', median(beside.latencies) / median(quiet.latencies), 2, '×'),
    ]
  },
}

export const crowds: Attack = {
  name: 'crowds',
  about: 'dashboard pages over 400 connections, nearly all of them refused',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, UNLIMITED)
    const { attacker, env } = attacked
    const member = await Member.create(program, env, 'member@example.com', 'enterprise')
    const browser = await attacked.signIn(attacker, '192.0.2.7')
    const { cookie } = browser
    const until = performance.now() + (isShort ? 1000 : 5000)
    const load = async () => {
      while (performance.now() < until) {
        const answer = await attacked.service.fetch('/app/account', { headers: { cookie } })
        await answer.arrayBuffer()
      }
    }
    const beside = await attacked.observe(async () => {
      await Promise.all(Array.from({ length: isShort ? 50 : 400 }, load))
    }, attacked.bulk(member))
    return [
      structure('batches of another account that failed', beside.failed, 0),
      timing('slowest batch of another account', highest(beside.latencies), 500, 'ms'),
    ]
  },
}
