// What do redirects feel, and how much memory does it take, while a hundred people sign in at once?
// npm run bench -- sign-in --seconds 10 --rounds 5
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { OneTimeLinkStore } from '../../src/accounts/one-time-link-store.ts'
import { issueOneTimeLink } from '../../src/accounts/one-time-links.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { sendClosed } from '../lib/closed-part.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { TemporaryFolder } from '../lib/leftovers.ts'
import { measureOpen, OPEN_METRICS, RESTING_MS } from '../lib/open-part.ts'
import { followLink, HitCheck } from '../lib/redirect-check.ts'
import { type Contender, hopcodeContender, targetsOf } from '../lib/redirect-round.ts'
import { alternate, medianOf, medianRatio, type Progress, type RoundResult } from '../lib/rounds.ts'
import type { LoadOptions, Metric, Scenario, ScenarioReport } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { hopcodeProgram } from '../lib/variants.ts'

const EMAIL = 'bench@example.com'
const PASSWORD = 'a password of the bench'
const PEOPLE = 100
const REDIRECTS_PER_SECOND = 1000
const SAMPLE_EVERY_MS = 10
/** The sign-ins run so much longer than the redirects at both ends. */
const LEAD_MS = 200

const METRICS: Metric[] = [
  ...OPEN_METRICS,
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
  const rate = REDIRECTS_PER_SECOND
  return {
    scenario: signIn.name,
    question: signIn.question,
    baseline: 'redirects',
    settings: { seconds, rounds, connections, rate, people: PEOPLE },
    metrics: METRICS,
    variants,
    plot: `sign-in: redirects at ${rate} requests/s`,
    bars: [
      {
        label: `p99 of redirects while ${PEOPLE} sign in at once, beside redirects alone`,
        value: medianRatio(variants, 'and sign-ins', 'redirects', 'openP99'),
        ...{ unit: '×', digits: 2, demand: { sense: '≤', bar: 2 } },
      },
      {
        label: `memory on top while ${PEOPLE} sign in at once`,
        value: medianOf(variants, 'and sign-ins', 'growth'),
        ...{ unit: ' MiB', digits: 0, demand: { sense: '≤', bar: 300 } },
      },
    ],
    notes: [
      `Open loop: redirects of warm codes at ${rate} requests/s, measured from when each was due.`,
      `Meanwhile each of ${PEOPLE} browsers that are new to the account sends the form with its ` +
        'right password, and again as soon as it is answered.',
      'Every sign-in had to end with a session whose page opens; every hit_count was compared ' +
        'with the redirects received.',
    ],
  }
}

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
  const people = withPeople ? await People.gather(server) : undefined

  await hits.begin()
  const resident = server.memory().resident
  let highest = resident
  const sampling = setInterval(() => {
    highest = Math.max(highest, server.memory().resident)
  }, SAMPLE_EVERY_MS)
  try {
    people?.begin()
    await Bun.sleep(LEAD_MS)
    const redirects = await measureOpen(server, {
      ...{ targets, connections, seconds, restMs: RESTING_MS },
      ratePerSecond: REDIRECTS_PER_SECOND,
    })
    await Bun.sleep(LEAD_MS)
    const signedIn = await people?.end()
    await hits.requireExactly(redirects.result.rightByTarget)
    const figures = { ...redirects.figures, ...signedIn, resident, growth: highest - resident }
    return { figures, latency: redirects.latency }
  } finally {
    clearInterval(sampling)
    await server.stop()
  }
}

interface Form {
  csrf: string
  cookie: string
}

/** Browsers at the door: each signs in, and again, until it is told to stop. */
class People {
  readonly #server: Server
  readonly #forms: readonly Form[]
  readonly #took: number[] = []
  #work: Promise<unknown> | undefined
  #startedAt = 0
  #ending = false

  private constructor(server: Server, forms: readonly Form[]) {
    this.#server = server
    this.#forms = forms
  }

  /** Each has the page with the form before it. */
  static async gather(server: Server): Promise<People> {
    const forms: Form[] = []
    for (let i = 0; i < PEOPLE; i++) forms.push(await openForm(`${server.origin}/app/sign-in`))
    return new People(server, forms)
  }

  begin(): void {
    this.#startedAt = performance.now()
    this.#work = Promise.all(this.#forms.map((form) => this.#signInAgainAndAgain(form)))
    // A failure is told where the end is waited for.
    this.#work.catch(() => {})
  }

  async end(): Promise<{ signIns: number; slowest: number }> {
    this.#ending = true
    await this.#work
    const elapsed = (performance.now() - this.#startedAt) / 1000
    return { signIns: this.#took.length / elapsed, slowest: Math.max(...this.#took) }
  }

  async #signInAgainAndAgain({ csrf, cookie }: Form): Promise<void> {
    const { origin } = this.#server
    let session = ''
    do {
      const startedAt = performance.now()
      const answer = await fetch(`${origin}/app/sign-in`, {
        ...{ method: 'POST', redirect: 'manual', headers: { cookie } },
        body: new URLSearchParams({ csrf, email: EMAIL, password: PASSWORD }),
      })
      this.#took.push(performance.now() - startedAt)
      if (answer.status !== 303) throw new Error(`signing in gave ${answer.status}`)
      session = cookiesOf(answer)
    } while (!this.#ending)
    const headers = { cookie: session }
    const { status } = await fetch(`${origin}/app/links`, { headers, redirect: 'manual' })
    if (status !== 200) throw new Error(`the page of somebody signed in gave ${status}`)
  }
}

async function openForm(address: string): Promise<Form> {
  const door = await fetch(address)
  const csrf = /name="csrf" value="([^"]+)"/.exec(await door.text())?.[1] ?? ''
  return { csrf, cookie: cookiesOf(door) }
}

const cookiesOf = ({ headers }: Response) =>
  headers
    .getSetCookie()
    .filter((cookie) => !/max-age=0/i.test(cookie))
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

/** Gives the folder's account the password. */
async function setPassword({ launch, dataDir }: Place): Promise<void> {
  const path = issueReset(dataDir)
  await using server = await startServer(launch)
  const { csrf, cookie } = await openForm(server.origin + path)
  const answer = await fetch(server.origin + path, {
    ...{ method: 'POST', redirect: 'manual', headers: { cookie } },
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
