// What are the latency of redirects and the memory while a hundred people sign in at once?
// npm run bench -- sign-in --seconds 10 --rounds 5
import { issueResetPath, openForm, setPassword } from '../lib/dashboard-client.ts'
import { atMost, measureVariants, type Plan, ratio, value } from '../lib/figures.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { measureOpen, OPEN_METRICS, SLEEP_MS, sendClosed } from '../lib/load-parts.ts'
import { signInRepeatedly } from '../lib/people.ts'
import { followLink, HitCheck } from '../lib/redirect-check.ts'
import { type Contender, hopcodeContender, targetsOf } from '../lib/redirect-round.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { ACCOUNT_EMAIL } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const PASSWORD = 'a password of the bench'
const PEOPLE = 100
/** Redirects per second: the high and the low rate. */
const MANY = 20_000
const FEW = 1000
/** Waiting for a core would be most of what a generator measures that mostly sleeps. */
const LOAD = { sleepMs: SLEEP_MS, priority: 'real-time' } as const
const SAMPLE_EVERY_MS = 10
/** The sign-ins begin this much earlier than the redirects and end this much later. */
const LEAD_SECONDS = 1

const METRICS: Metric[] = [
  ...OPEN_METRICS,
  { key: 'fewP99', label: `p99 at ${FEW} requests/s, µs`, digits: 0, ratio: true },
  { key: 'fewLateness', label: '… own lateness p99, µs', digits: 0, ratio: false },
  { key: 'signIns', label: 'sign-ins answered/s', digits: 1, ratio: false },
  { key: 'slowest', label: 'the slowest sign-in, ms', digits: 0, ratio: false },
  { key: 'resident', label: 'memory before, MiB', digits: 0, ratio: false },
  { key: 'growth', label: 'memory on top at its highest, MiB', digits: 1, ratio: false },
]

type Setup = Contender & { apiKey: string }

export const signIn: Scenario = {
  name: 'sign-in',
  question: `What is the latency of redirects while ${PEOPLE} people sign in at once?`,
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await emptyWorkspace(options)
  const { program, dataDir } = workspace
  const setup = await hopcodeContender('hopcode', program, dataDir)
  await givePassword(setup, dataDir)
  const plan: Plan<{ name: string }> = {
    variants: [{ name: 'redirects' }, { name: 'and sign-ins' }],
    measure: ({ name }) => measureRound(setup, options, { withPeople: name === 'and sign-ins' }),
    baseline: 'redirects',
    settings: { many: MANY, few: FEW, people: PEOPLE },
    metrics: METRICS,
    figures: {
      [`p99 of ${MANY} redirects/s while ${PEOPLE} sign in at once, beside redirects alone`]: ratio(
        'and sign-ins',
        'redirects',
        'openP99',
        atMost(2),
      ),
      [`p99 of ${FEW} redirects/s while ${PEOPLE} sign in at once, beside redirects alone`]: ratio(
        'and sign-ins',
        'redirects',
        'fewP99',
        atMost(2),
      ),
      [`memory on top while ${PEOPLE} sign in at once`]: value(
        'and sign-ins',
        'growth',
        ' MiB',
        0,
        atMost(300),
      ),
    },
    notes: [
      `Open loop: redirects of warm codes at ${MANY} requests/s, then at ${FEW}, measured from ` +
        'when each was due.',
      'Where it has the right to, the generator runs the moment it wakes (lib/real-time.ts).',
      `Meanwhile each of ${PEOPLE} browsers that are new to the account sends the form with its ` +
        'right password, and again as soon as it is answered.',
      'Every answer had to let in, and the last session to open a page; every hit_count was ' +
        'compared with the redirects received.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function measureRound(
  { launch, links, apiKey }: Setup,
  { connections, seconds, warmUp }: LoadOptions,
  { withPeople }: { withPeople: boolean },
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const hits = new HitCheck(new HopcodeClient(server.origin, apiKey), links)
  const targets = targetsOf(links)
  for (const link of links) await followLink(server, link)
  await sendClosed(server, { targets, connections, seconds: Math.max(1, warmUp) })

  await hits.begin()
  const resident = server.memory().resident
  let highest = resident
  const sampling = setInterval(() => {
    highest = Math.max(highest, server.memory().resident)
  }, SAMPLE_EVERY_MS)
  try {
    const people = withPeople ? await sendPeople(server, 2 * seconds) : undefined
    const load = { ...LOAD, targets, connections, seconds }
    const many = await measureOpen(server, { ...load, ratePerSecond: MANY })
    const few = await measureOpen(server, { ...load, ratePerSecond: FEW })
    const signedIn = await people?.ended
    const { rightByTarget } = few.result
    await hits.requireExactly(
      many.result.rightByTarget.map((right, target) => right + (rightByTarget[target] ?? 0)),
    )
    const { openP99: fewP99 = NaN, latenessP99: fewLateness = NaN } = few.figures
    const figures = {
      ...many.figures,
      ...signedIn,
      fewP99,
      fewLateness,
      resident,
      growth: highest - resident,
    }
    return { figures }
  } finally {
    clearInterval(sampling)
    await server.stop()
  }
}

/** Starts the sign-ins, which continue for at least `seconds` after this resolves. */
async function sendPeople({ origin }: Server, seconds: number) {
  const forms = []
  for (let i = 0; i < PEOPLE; i++) forms.push(await openForm(`${origin}/app/sign-in`))
  const ended = signInRepeatedly({
    origin,
    forms,
    email: ACCOUNT_EMAIL,
    password: PASSWORD,
    seconds: seconds + 2 * LEAD_SECONDS,
  })
  // The caller awaits `ended` later, and gets its error then.
  ended.catch(() => {})
  await Bun.sleep(LEAD_SECONDS * 1000)
  return { ended }
}

async function givePassword({ launch }: Setup, dataDir: string): Promise<void> {
  const resetPath = issueResetPath(dataDir)
  await using server = await startServer(launch)
  await setPassword(server.origin, resetPath, PASSWORD)
  await server.stop()
}
