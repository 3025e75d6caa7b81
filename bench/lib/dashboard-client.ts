import { issueOneTimeLink, OneTimeLinkStore } from '../../src/accounts/one-time-links.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { ACCOUNT_EMAIL } from './variants.ts'

/** An opened page with a form: what a browser must send with it. */
export interface OpenForm {
  csrf: string
  cookie: string
}

export async function openForm(url: string): Promise<OpenForm> {
  const page = await fetch(url)
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''
  return { csrf, cookie: cookiesOf(page) }
}

/** Posts an opened form. Returns the cookies of the response; throws unless it redirects. */
export async function submitForm(
  url: string,
  { csrf, cookie }: OpenForm,
  fields: Record<string, string>,
  signal?: AbortSignal,
): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie },
    body: new URLSearchParams({ csrf, ...fields }),
    ...(signal && { signal }),
  })
  if (answer.status !== 303) throw new Error(`${url} answered ${answer.status}`)
  return cookiesOf(answer)
}

/** Sets the password of the account with a reset link. Returns the cookies of its new session. */
export async function setPassword(
  origin: string,
  resetPath: string,
  password: string,
): Promise<string> {
  return submitForm(origin + resetPath, await openForm(origin + resetPath), { password })
}

/** The path of a new reset link for the account of a data folder. */
export function issueResetPath(dataDir: string): string {
  const { db, accounts, hasher } = openDataFolder(dataDir)
  try {
    const accountId = accounts.findByEmail(ACCOUNT_EMAIL)?.id
    if (accountId === undefined) throw new Error(`${dataDir} has no account`)
    const deps = { hasher, random: secureRandom }
    const link = issueOneTimeLink(deps, { purpose: 'reset', accountId }, Date.now())
    new OneTimeLinkStore(db).add(link.stored)
    return link.path
  } finally {
    db.close()
  }
}

const cookiesOf = ({ headers }: Response) =>
  headers
    .getSetCookie()
    .filter((cookie) => !/max-age=0/i.test(cookie))
    .map((cookie) => cookie.split(';')[0])
    .join('; ')
