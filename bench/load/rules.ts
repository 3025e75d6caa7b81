// What do rules of links and unknown codes cost, compared with a plain link?
// npm run bench -- rules --seconds 3 --rounds 5
import { join } from 'node:path'
import { atLeast, atMost, main, measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { forEach, HopcodeClient } from '../lib/hopcode-client.ts'
import {
  type Contender,
  copyOf,
  hopcodeContender,
  measureRedirects,
  REDIRECT_METRICS,
  redirectFacts,
} from '../lib/redirect-round.ts'
import type { Target } from '../lib/request.ts'
import type { Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { startServer } from '../lib/server.ts'
import type { Link } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

export const rules: Scenario = {
  name: 'rules',
  question: 'What do rules of links and unknown codes cost, beside a plain link?',
  run,
}

const RULES = { expires_at: '2099-01-01T00:00:00Z', forward_query: true }
const QUERY = '?medium=poster'
/** All are compared, because none holds. */
const FIVE = {
  destinations: [
    { when: { os: ['ios'] }, url: 'https://example.com/ios' },
    { when: { os: ['android'], device: ['phone'] }, url: 'https://example.com/android' },
    { when: { language: ['de', 'fr'] }, url: 'https://example.com/de' },
    { when: { query: { v: '2' } }, url: 'https://example.com/2' },
    {
      when: { hours: '12:00-12:01', days: ['mon'], zone: 'Pacific/Chatham' },
      url: 'https://example.com/lunch',
    },
  ],
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  say('preparing the services and their links')
  using workspace = await emptyWorkspace(options)
  const { program, dataDir, temporaryPath } = workspace
  const plain = await hopcodeContender('plain', program, dataDir)
  const contenderOf = (name: string) => copyOf(plain, name, program, join(temporaryPath, name))
  const withRules = contenderOf('rules')
  await setRules(withRules, RULES)
  const destinations = contenderOf('destinations')
  await setRules(destinations, FIVE)
  const query = { ...withRules, name: 'query', query: QUERY }
  const appending = contenderOf('append')
  await setRules(appending, { forward_path: 'append' })
  const contenders: Contender[] = [
    plain,
    withRules,
    query,
    destinations,
    { ...appending, loops: 'kept', targetOf: appendTo },
    unknownIn('unknown', plain),
    unknownIn('unknown beside append', appending),
  ]
  const plan: Plan<Contender> = {
    variants: contenders,
    measure: (contender) => measureRedirects(contender, options),
    baseline: 'plain',
    metrics: REDIRECT_METRICS,
    figures: {
      'redirects/s of links with an expiry and `forward_query`, beside plain links': main(
        ratio('rules', 'plain', 'requestsPerSecond', atLeast(0.85, 0.95)),
      ),
      'CPU per redirect of the same, beside plain links': main(
        ratio('rules', 'plain', 'cpuMicros', atMost(1.2, 1.1)),
      ),
      'redirects/s of links with five destinations, beside plain links': main(
        ratio('destinations', 'plain', 'requestsPerSecond', atLeast(0.8, 0.9)),
      ),
      'CPU per redirect of the same links': main(
        ratio('destinations', 'plain', 'cpuMicros', atMost(1.3, 1.2)),
      ),
      'redirects/s of links that append a path of two segments, beside plain links': main(
        ratio('append', 'plain', 'requestsPerSecond', atLeast(0.9, 0.95)),
      ),
      'CPU per request for an unknown code where links append, beside where none does': main(
        ratio('unknown beside append', 'unknown', 'cpuMicros', atMost(1.05, 1)),
      ),
      // In turn: redirect-cold asks for new ones too.
      'CPU per request for an unknown code, beside a redirect of a plain link': main(
        ratio('unknown', 'plain', 'cpuMicros', atMost(1.05, 1)),
      ),
      'an expiry and `forward_query` with a query, which is merged into that of the destination':
        ratio('query', 'plain', 'cpuMicros'),
    },
    ...redirectFacts(options),
  }
  return await measureVariants(plan, options, say)
}

const appendTo = ({ code, url }: Link): Target => ({
  path: `/${code}/a/b`,
  status: 302,
  location: url.replace('?', '/a/b?'),
})

const unknownIn = (name: string, { launch, links }: Contender): Contender => ({
  name,
  launch,
  links,
  loops: 'kept',
  targetOf: miss,
})

/** Generated codes have a character less. */
const miss = ({ code }: Link): Target => ({ path: `/${code}X`, status: 404 })

async function setRules(
  { launch, apiKey, links }: Contender & { apiKey: string },
  rules: object,
): Promise<void> {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  await forEach(links, ({ code }) => client.patchLink(code, rules))
  await server.stop()
}
