import { setThreadPriority } from '../../src/lib/priority.ts'
import { answerAsProcess, runInOwnProcess } from './own-process.ts'

/** A browser at the door: it has the page with the form before it. */
export interface Door {
  csrf: string
  cookie: string
}

interface PeopleOptions {
  origin: string
  /** One a person. */
  doors: Door[]
  email: string
  password: string
  seconds: number
}

export interface SignedIn {
  /** Sign-ins answered each second. */
  signIns: number
  /** Milliseconds of the slowest. */
  slowest: number
}

export async function openDoor(address: string): Promise<Door> {
  const page = await fetch(address)
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''
  return { csrf, cookie: cookiesOf(page) }
}

/**
 * Each person signs in, and again as soon as that is answered, in a process of its own. When the
 * time is over, whoever still waits goes away. Throws unless every answer lets in, and the last
 * session of all opens a page.
 */
export const signInAgainAndAgain = async (options: PeopleOptions): Promise<SignedIn> =>
  (await runInOwnProcess<SignedIn>(new URL(import.meta.url), options)).result

async function signInUntilTheEnd(options: PeopleOptions): Promise<SignedIn> {
  // Their browsers run on machines of their own.
  setThreadPriority('background')
  const over = AbortSignal.timeout(options.seconds * 1000)
  const took: number[] = []
  let session = ''
  const signInUntilOver = async (door: Door) => {
    while (!over.aborted) {
      const sentAt = performance.now()
      const cookies = await signIn(options, door, over)
      if (cookies === undefined) break
      took.push(performance.now() - sentAt)
      session = cookies
    }
  }
  await Promise.all(options.doors.map(signInUntilOver))
  const headers = { cookie: session }
  const page = await fetch(`${options.origin}/app/links`, { headers, redirect: 'manual' })
  if (page.status !== 200) throw new Error(`the page of somebody signed in gave ${page.status}`)
  return { signIns: took.length / options.seconds, slowest: Math.max(...took) }
}

/** The cookies of the new session; undefined when the time was over first. */
async function signIn(
  { origin, email, password }: PeopleOptions,
  { csrf, cookie }: Door,
  over: AbortSignal,
): Promise<string | undefined> {
  const sent = fetch(`${origin}/app/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie },
    signal: over,
    body: new URLSearchParams({ csrf, email, password }),
  })
  const answer = await sent.catch((error) => {
    if (!over.aborted) throw error
    return undefined
  })
  if (answer && answer.status !== 303) throw new Error(`signing in gave ${answer.status}`)
  return answer && cookiesOf(answer)
}

const cookiesOf = ({ headers }: Response) =>
  headers
    .getSetCookie()
    .filter((cookie) => !/max-age=0/i.test(cookie))
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

if (import.meta.main) await answerAsProcess(signInUntilTheEnd)
