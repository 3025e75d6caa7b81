// What do details of visits (referrer, country, device, bots) cost the redirects?
// npm run bench -- visits --seconds 3 --rounds 5
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import { alternate, medianRatio, type Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario, SummaryFigure } from '../lib/scenario.ts'
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
  say('preparing a service and its links')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir, temporaryPath } = workspace
  const service = await hopcodeContender('on', program, dataDir)
  const countries = join(temporaryPath, 'geoip')
  writeFileSync(countries, countriesText())
  const variant = (name: 'on' | 'off') => ({
    ...service,
    name,
    visitors: visitors(),
    launch: {
      ...hopcode(program, dataDir, {
        ...WITHOUT_LIMITS,
        TRUSTED_PROXIES: '127.0.0.1',
        VISIT_DETAILS: name,
        COUNTRY_FILE: countries,
      }),
      name,
    },
  })
  const contenders = [variant('off'), variant('on')]
  const measure = (contender: (typeof contenders)[number]) => measureRedirects(contender, options)
  const variants = await alternate(contenders, options.rounds, measure, say)
  const ratio = (label: string, key: string, target?: SummaryFigure['target']): SummaryFigure => ({
    label: `${label}, with details of visits beside without`,
    value: medianRatio(variants, 'on', 'off', key),
    unit: '×',
    digits: 2,
    ...(target && { target, isMain: true }),
  })
  return {
    baseline: 'off',
    metrics: [
      ...REDIRECT_METRICS,
      {
        key: 'redirectThreadMicros',
        label: 'closed loop: CPU µs of the redirect threads per request',
        digits: 2,
        ratio: true,
      },
    ],
    variants,
    summary: [
      ratio('redirects/s', 'requestsPerSecond', { sense: '≥', value: 0.97, stretch: 0.99 }),
      ratio('CPU of the redirect threads per redirect', 'redirectThreadMicros', {
        sense: '≤',
        value: 1.04,
        stretch: 1.02,
      }),
      ratio('p99', 'openP99', { sense: '≤', value: 1.1, stretch: 1 }),
      ratio('CPU of all threads per redirect', 'cpuMicros'),
      ratio('memory', 'residentMebibytes'),
    ],
    ...redirectFacts(options, visits.name),
  }
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

/** A file like that of tor-geoipdb: every /16 belongs to a country. */
function countriesText(): string {
  const codes = ['DE', 'US', 'FR', 'NO', 'JP', 'BR', 'IN', 'GB']
  return Array.from({ length: 256 * 200 }, (_, n) => {
    const from = n * 65_536 + 16_777_216
    return `${from},${from + 65_535},${codes[n % codes.length]}\n`
  }).join('')
}
