// What do details of visits (referrer, country, device, bots) cost the redirects?
// npm run bench -- visits --seconds 3 --rounds 5
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atLeast, atMost, main, measureVariants, type Plan, ratio, value } from '../lib/figures.ts'
import { sendOwn } from '../lib/load-parts.ts'
import {
  type Contender,
  copyOf,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
  targetsFor,
  targetsOf,
} from '../lib/redirect-round.ts'
import type { Target } from '../lib/request.ts'
import type { Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario, SummaryFigure } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import { addTurns, TURN_METRICS, TURN_NOTE } from '../lib/short-turns.ts'
import { hopcode, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

export const visits: Scenario = {
  name: 'visits',
  question: 'What do details of visits cost the redirects?',
  run,
}

const AGENTS = 500
const REFERRERS = 50

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing two services and their links')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir, temporaryPath } = workspace
  const countries = join(temporaryPath, 'geoip')
  writeFileSync(countries, countriesText())
  const plain = await hopcodeContender('plain', program, dataDir)
  const variant = (name: 'on' | 'off') => {
    const service = copyOf(plain, name, program, join(temporaryPath, name))
    const settings = {
      ...WITHOUT_LIMITS,
      TRUSTED_PROXIES: '127.0.0.1',
      VISIT_DETAILS: name,
      COUNTRY_FILE: countries,
    }
    return {
      ...service,
      visitors: visitors(),
      launch: { ...hopcode(program, service.dataDir, settings), name },
    }
  }
  const off = variant('off')
  const on = variant('on')
  const facts = redirectFacts(options)
  const beside = (key: string, target?: SummaryFigure['target']) => ratio('on', 'off', key, target)
  const plan: Plan<Contender> = {
    variants: [off, on],
    measure: (contender) => measureRedirects(contender, options),
    finish: async (variants) => {
      await using offServer = await startServer(off.launch)
      await using onServer = await startServer(on.launch)
      const services = [
        { name: 'off', server: offServer, targets: targetsFor(off) },
        { name: 'on', server: onServer, targets: targetsFor(on) },
      ]
      await addTurns(services, options, { variants, say })
      await offServer.stop()
      await onServer.stop()
      say('comparing the details with what was sent')
      const error = await largestError(on, options)
      for (const round of variants.find(({ name }) => name === 'on')?.rounds ?? []) {
        round.error = error
      }
    },
    baseline: 'off',
    metrics: [...REDIRECT_METRICS, ...TURN_METRICS],
    figures: {
      'redirects/s, with details of visits beside without': main(
        beside('turnRedirects', atLeast(0.97, 0.99)),
      ),
      'CPU of the redirect threads per redirect, with details of visits beside without': main(
        beside('turnThreadMicros', atMost(1.04, 1.02)),
      ),
      'p99, with details of visits beside without': main(beside('turnP99', atMost(1.1, 1))),
      'CPU of all threads per redirect, with details of visits beside without':
        beside('turnMicros'),
      'memory, with details of visits beside without': beside('residentMebibytes'),
      'largest error of a value with a share of 5 % or more, at full load': main(
        value('on', 'error', '%', 1, atMost(3, 1)),
      ),
    },
    ...facts,
    notes: [...facts.notes, TURN_NOTE],
  }
  return await measureVariants(plan, options, say)
}

/** Headers of visitors: as many browsers and referrers, and each with another address. */
function visitors(): Record<string, string>[] {
  return Array.from({ length: AGENTS }, (_, n) => ({
    'X-Forwarded-For': `${1 + (n % 200)}.${(n * 7) % 256}.${(n * 13) % 256}.${(n * 31) % 256}`,
    'User-Agent':
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) ` +
      `Chrome/${60 + (n % 80)}.0.${n}.0 Safari/537.36`,
    Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8',
    Referer: `https://site-${n % REFERRERS}.example/articles/2026?page=${n}`,
    'Accept-Language': 'en-GB,en;q=0.9,de;q=0.8',
    Cookie: 'consent=yes; session=0123456789abcdef0123456789abcdef',
  }))
}

interface VisitsAnswer {
  hits: number
  known: number
  values: { value: string; hits: number }[]
}

/** Polls until the details of the last redirects are there: they come every ten seconds. */
const POLL_MS = 1000
const POLLS_MAX = 60
/** Long enough for several thousand visits per value. */
const LOAD_SECONDS_MIN = 15
/** Polls without a change. */
const STABLE = 12

/** The service at full load: how far the details are from what was sent. */
async function largestError(
  { launch, links, apiKey }: Contender,
  { connections, seconds }: LoadOptions,
) {
  await using server = await startServer(launch)
  const mixture = Array.from({ length: 20 }, (_, n) => ({ device: DEVICES[n % 4] ?? '', n }))
  const targets = mixture.map(({ device, n }) => ({
    ...(targetsOf(links)[n] as Target),
    headers: {
      'X-Forwarded-For': `1.${n % 5}.0.1`,
      'User-Agent': AGENTS_BY_DEVICE[device] ?? '',
      Referer: `https://site-${n % 10}.example/`,
    },
  }))
  const read = async (by: string) => {
    const response = await fetch(`${server.origin}/api/visits?by=${by}&limit=100`, {
      headers: { 'X-API-Key': apiKey ?? '' },
    })
    return (await response.json()) as VisitsAnswer
  }
  const readAll = () => Promise.all(Object.keys(SHARES).map(read))
  const before = await readAll()
  await sendOwn(server, { targets, connections, seconds: Math.max(LOAD_SECONDS_MIN, seconds) })
  let known = -1
  for (let poll = 0, same = 0; poll < POLLS_MAX && same < STABLE; poll++) {
    await Bun.sleep(POLL_MS)
    const now = (await read('device')).known
    same = now === known ? same + 1 : 0
    known = now
  }
  const after = await readAll()
  await server.stop()
  const errors = Object.values(SHARES).flatMap((shares, at) => {
    const hits = (after[at]?.hits ?? 0) - (before[at]?.hits ?? 0)
    return Object.entries(shares).map(([value, share]) => {
      const counted = hitsOf(after[at], value) - hitsOf(before[at], value)
      return Math.abs(counted / (hits * share) - 1) * 100
    })
  })
  return Math.max(...errors)
}

const hitsOf = (answer: VisitsAnswer | undefined, wanted: string): number =>
  answer?.values.find(({ value }) => value === wanted)?.hits ?? 0

/** Two of four visitors have a phone. */
const DEVICES = ['desktop', 'phone', 'bot', 'phone']
const AGENTS_BY_DEVICE: Record<string, string> = {
  desktop: 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0',
  phone:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 ' +
    '(KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
  bot: 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
}
/** Of all redirects. Every second referrer and each fifth network has bots in the same part. */
const SHARES: Record<string, Record<string, number>> = {
  device: { desktop: 0.25, phone: 0.5 },
  browser: { firefox: 0.25, safari: 0.5 },
  os: { linux: 0.25, ios: 0.5 },
  bot: { slack: 0.25 },
  referrer: Object.fromEntries([1, 3, 5, 7, 9].map((n) => [`site-${n}.example`, 0.1])),
}

/** A file like that of tor-geoipdb: every /16 belongs to a country. */
function countriesText(): string {
  const codes = ['DE', 'US', 'FR', 'NO', 'JP', 'BR', 'IN', 'GB']
  return Array.from({ length: 256 * 200 }, (_, n) => {
    const from = n * 65_536 + 16_777_216
    return `${from},${from + 65_535},${codes[n % codes.length]}\n`
  }).join('')
}
