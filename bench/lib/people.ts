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
 * Each person signs in, and again as soon as that is answered, in a process of its own. When the
 * time is over, whoever still waits goes away. Throws unless every answer lets in, and the last
 * session of each opens a page.
 */
export const signInAgainAndAgain = async (options: PeopleOptions): Promise<SignedIn> =>
  (await runInOwnProcess<SignedIn>(new URL(import.meta.url), options)).result

async function signInUntilTheEnd(options: PeopleOptions): Promise<SignedIn> {
  // Their browsers run on machines of their own.
  stayBehind()
  const over = AbortSignal.timeout(options.seconds * 1000)
  const all = (
    await Promise.all(options.doors.map((door) => beOnePerson(options, door, over)))
  ).flat()
  if (all.length === 0) throw new Error('nobody was let in')
  return { signIns: all.length / options.seconds, slowest: Math.max(...all) }
}

async function beOnePerson(
  { origin, email, password }: PeopleOptions,
  { csrf, cookie }: Door,
  over: AbortSignal,
): Promise<number[]> {
  const took: number[] = []
  let session = ''
  while (!over.aborted) {
    const sentAt = performance.now()
    const answer = await fetch(`${origin}/app/sign-in`, {
      ...{ method: 'POST', redirect: 'manual', headers: { cookie }, signal: over },
      body: new URLSearchParams({ csrf, email, password }),
    }).catch((error) => {
      if (!over.aborted) throw error
    })
    if (!answer) break
    took.push(performance.now() - sentAt)
    if (answer.status !== 303) throw new Error(`signing in gave ${answer.status}`)
    session = cookiesOf(answer)
  }
  if (session === '') return took
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
