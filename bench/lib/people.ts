import { stayBehind } from '../../src/lib/priority.ts'
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
 * Each person signs in, and again as soon as that is answered, until the time is over, in a process
 * of its own. Throws unless all are let in, and the session of each opens a page at the end.
 */
export const signInAgainAndAgain = async (options: PeopleOptions): Promise<SignedIn> =>
  (await runInOwnProcess<SignedIn>(new URL(import.meta.url), options)).result

async function signInUntilTheEnd(options: PeopleOptions): Promise<SignedIn> {
  // Their browsers run on machines of their own.
  stayBehind()
  const startedAt = performance.now()
  const took = await Promise.all(options.doors.map((door) => beOnePerson(options, door, startedAt)))
  const elapsed = (performance.now() - startedAt) / 1000
  const all = took.flat()
  return { signIns: all.length / elapsed, slowest: Math.max(...all) }
}

async function beOnePerson(
  { origin, email, password, seconds }: PeopleOptions,
  { csrf, cookie }: Door,
  startedAt: number,
): Promise<number[]> {
  const took: number[] = []
  let session = ''
  do {
    const sentAt = performance.now()
    const answer = await fetch(`${origin}/app/sign-in`, {
      ...{ method: 'POST', redirect: 'manual', headers: { cookie } },
      body: new URLSearchParams({ csrf, email, password }),
    })
    took.push(performance.now() - sentAt)
    if (answer.status !== 303) throw new Error(`signing in gave ${answer.status}`)
    session = cookiesOf(answer)
  } while (performance.now() - startedAt < seconds * 1000)
  const headers = { cookie: session }
  const { status } = await fetch(`${origin}/app/links`, { headers, redirect: 'manual' })
  if (status !== 200) throw new Error(`the page of somebody signed in gave ${status}`)
  return took
}

const cookiesOf = ({ headers }: Response) =>
  headers
    .getSetCookie()
    .filter((cookie) => !/max-age=0/i.test(cookie))
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

if (import.meta.main) await answerAsProcess(signInUntilTheEnd)
