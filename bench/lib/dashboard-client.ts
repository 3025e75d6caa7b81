/** Sets the password of the account with a reset link. Returns the cookies of its new session. */
export async function setPassword(
  origin: string,
  resetPath: string,
  password: string,
): Promise<string> {
  return await sendForm(origin + resetPath, { password })
}

/** Signs in. Returns the cookies of the new session. */
export const signIn = (origin: string, who: { email: string; password: string }): Promise<string> =>
  sendForm(`${origin}/app/sign-in`, who)

/** Opens a page and sends its form, which must be accepted. Returns the cookies that it sets. */
async function sendForm(url: string, fields: Record<string, string>): Promise<string> {
  const page = await fetch(url)
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''
  const answer = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: cookiesOf(page) },
    body: new URLSearchParams({ csrf, ...fields }),
  })
  if (answer.status !== 303) throw new Error(`${url} answered ${answer.status}`)
  return cookiesOf(answer)
}

const cookiesOf = ({ headers }: Response) =>
  headers
    .getSetCookie()
    .filter((cookie) => !/max-age=0/i.test(cookie))
    .map((cookie) => cookie.split(';')[0])
    .join('; ')
