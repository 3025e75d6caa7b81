// What do redirects feel, and how much memory does it take, while a hundred people sign in at once?
// npm run bench -- sign-in --seconds 10 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { issueOneTimeLink, OneTimeLinkStore } from '../../src/accounts/one-time-links.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { sendClosed } from '../lib/closed-part.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { measureOpen, OPEN_METRICS, RESTING_MS } from '../lib/open-part.ts'
import { openDoor, signInAgainAndAgain } from '../lib/people.ts'
import { followLink, HitCheck } from '../lib/redirect-check.ts'
import { type Contender, hopcodeContender, targetsOf } from '../lib/redirect-round.ts'
import { alternate, medianOf, medianRatio, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { Bar, LoadOptions, Metric, Scenario, ScenarioReport } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { hopcodeProgram } from '../lib/variants.ts'

const EMAIL = 'bench@example.com'
const PASSWORD = 'a password of the bench'
const PEOPLE = 100
/** Redirects a second where there are many, and where there are few. */
const MANY = 20_000
const FEW = 1000
const SAMPLE_EVERY_MS = 10
/** The sign-ins run so much longer than the redirects at both ends. */
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

interface Place extends Contender {
  apiKey: string
  dataDir: string
}

export const signIn: Scenario = {
  name: 'sign-in',
  question: `What do redirects feel while ${PEOPLE} people sign in at once?`,
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<ScenarioReport> {
  using temporary = new TemporaryFolder()
  const dataDir = join(temporary.path, 'data')
  mkdirSync(dataDir)
  const program = await hopcodeProgram({ fromSource: options.source })
  const place = { ...(await hopcodeContender('hopcode', program, dataDir)), dataDir }
  await setPassword(place)
  const measure = ({ name }: { name: string }) =>
    measureRound(place, options, { withPeople: name === 'and sign-ins' })
  const contenders = [{ name: 'redirects' }, { name: 'and sign-ins' }]
  const variants = await alternate(contenders, options.rounds, measure, say)
  const { seconds, rounds, connections } = options
  return {
    scenario: signIn.name,
    question: signIn.question,
    baseline: 'redirects',
    settings: { seconds, rounds, connections, many: MANY, few: FEW, people: PEOPLE },
    metrics: METRICS,
    variants,
    plot: `sign-in: redirects at ${MANY} requests/s`,
    bars: [
      p99Bar(MANY, medianRatio(variants, 'and sign-ins', 'redirects', 'openP99')),
      p99Bar(FEW, medianRatio(variants, 'and sign-ins', 'redirects', 'fewP99')),
      {
        label: `memory on top while ${PEOPLE} sign in at once`,
        value: medianOf(variants, 'and sign-ins', 'growth'),
        unit: ' MiB',
        digits: 0,
        demand: { sense: '≤', bar: 300 },
      },
    ],
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
}

const p99Bar = (rate: number, value: number): Bar => ({
  label: `p99 of ${rate} redirects/s while ${PEOPLE} sign in at once, beside redirects alone`,
  value,
  unit: '×',
  digits: 2,
  demand: { sense: '≤', bar: 2 },
})

async function measureRound(
  { launch, links, apiKey }: Place,
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
    const load = { targets, connections, seconds, restMs: RESTING_MS, isPunctual: true }
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
    return { figures, latency: many.latency }
  } finally {
    clearInterval(sampling)
    await server.stop()
  }
}

/** Begins the sign-ins; they outlast `seconds` from when this resolves. */
async function sendPeople({ origin }: Server, seconds: number) {
  const doors = []
  for (let i = 0; i < PEOPLE; i++) doors.push(await openDoor(`${origin}/app/sign-in`))
  const ended = signInAgainAndAgain({
    origin,
    doors,
    email: EMAIL,
    password: PASSWORD,
    seconds: seconds + 2 * LEAD_SECONDS,
  })
  // A failure is told where the end is waited for.
  ended.catch(() => {})
  await Bun.sleep(LEAD_SECONDS * 1000)
  return { ended }
}

/** Gives the folder's account the password. */
async function setPassword({ launch, dataDir }: Place): Promise<void> {
  const path = issueReset(dataDir)
  await using server = await startServer(launch)
  const { csrf, cookie } = await openDoor(server.origin + path)
  const answer = await fetch(server.origin + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie },
    body: new URLSearchParams({ csrf, password: PASSWORD }),
  })
  if (answer.status !== 303) throw new Error(`setting the password gave ${answer.status}`)
  await server.stop()
}

/** The path that gives the folder's account a password. */
function issueReset(dataDir: string): string {
  const { db, accounts, hasher } = openDataFolder(dataDir)
  try {
    const accountId = accounts.findByEmail(EMAIL)?.id
    if (accountId === undefined) throw new Error(`${dataDir} has no account`)
    const deps = { hasher, random: secureRandom }
    const link = issueOneTimeLink(deps, { purpose: 'reset', accountId }, Date.now())
    new OneTimeLinkStore(db).add(link.stored)
    return link.path
  } finally {
    db.close()
  }
}
