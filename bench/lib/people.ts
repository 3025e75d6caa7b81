import { setThreadPriority } from '../../src/lib/priority.ts'
import { type OpenForm, submitForm } from './dashboard-client.ts'
import { answerAsProcess, runInOwnProcess } from './own-process.ts'

interface PeopleOptions {
  origin: string
  /** One per person. */
  forms: OpenForm[]
  email: string
  password: string
  seconds: number
}

interface SignInLoad {
  /** Sign-ins answered per second. */
  signIns: number
  /** Milliseconds of the slowest. */
  slowest: number
}

/**
 * Each person signs in, and again as soon as that is answered, in a separate process. At the end,
 * requests in progress are aborted. Throws unless every response signs in and the last session
 * opens a page.
 */
export const signInRepeatedly = async (options: PeopleOptions): Promise<SignInLoad> =>
  (await runInOwnProcess<SignInLoad>(new URL(import.meta.url), options)).result

async function signInUntilTheEnd(options: PeopleOptions): Promise<SignInLoad> {
  const { origin, email, password, seconds } = options
  // Real browsers run on other machines.
  setThreadPriority('background')
  const over = AbortSignal.timeout(seconds * 1000)
  const took: number[] = []
  let session = ''
  const signInUntilOver = async (form: OpenForm) => {
    while (!over.aborted) {
      const sentAt = performance.now()
      try {
        session = await submitForm(`${origin}/app/sign-in`, form, { email, password }, over)
      } catch (error) {
        if (!over.aborted) throw error
        return
      }
      took.push(performance.now() - sentAt)
    }
  }
  await Promise.all(options.forms.map(signInUntilOver))
  const headers = { cookie: session }
  const page = await fetch(`${origin}/app/links`, { headers, redirect: 'manual' })
  if (page.status !== 200) throw new Error(`a page of the signed-in account gave ${page.status}`)
  return { signIns: took.length / seconds, slowest: Math.max(...took) }
}

if (import.meta.main) await answerAsProcess(signInUntilTheEnd)
