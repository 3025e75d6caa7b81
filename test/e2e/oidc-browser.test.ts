import { expect } from 'bun:test'
import { Provider } from 'oidc-provider'
import { testApp } from '../support/app.ts'
import { browserTests } from '../support/browser.ts'
import { inviteTo, makeMember } from '../support/members.ts'
import { freePort } from '../support/ports.ts'

/** Sign-in with the provider of the package oidc-provider, whose users have any password. */

const { browser, test } = browserTests()
const SECRET = 'a secret of forty-two characters for tests'

async function listen(issuerPort: number, redirectUri: string) {
  const provider = new Provider(`http://127.0.0.1:${issuerPort}`, {
    clients: [{ client_id: 'hopcode', client_secret: SECRET, redirect_uris: [redirectUri] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: id }),
    }),
    cookies: { keys: ['for tests'] },
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  const server = provider.listen(issuerPort, '127.0.0.1', resolve)
  await promise
  return {
    [Symbol.dispose]: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

test('an invited person signs in at a provider, and again from the sign-in page', async () => {
  const [port, issuerPort] = [freePort(), freePort()]
  const base = `http://127.0.0.1:${port}`
  using _provider = await listen(issuerPort, `${base}/app/sign-in/oidc/callback`)
  await using app = await testApp({
    env: {
      PORT: String(port),
      BASE_URL: base,
      OIDC_ISSUER: `http://127.0.0.1:${issuerPort}`,
      OIDC_CLIENT_ID: 'hopcode',
      OIDC_CLIENT_SECRET: SECRET,
      OIDC_NAME: 'Example SSO',
    },
  })
  const bob = await makeMember(app, 'bob@example.com')
  await bob.post('/app/links', { url: 'https://example.com/of-bob' })
  const invitation = await inviteTo(bob, 'ann@example.com', 'editor')

  const context = await browser().newContext()
  const page = await context.newPage()
  // Of this service: the pages of the provider load a font from elsewhere.
  const problems: string[] = []
  page.on('console', (message) => {
    const isOurs = message.location().url.startsWith(base)
    if (isOurs && message.type() === 'error') problems.push(message.text())
  })
  const signIn = async (path: string) => {
    await page.goto(base + path)
    await page.getByRole('link', { name: 'Sign in with Example SSO' }).click()
  }
  await signIn(invitation)
  await page.locator('input[name=login]').fill('ann')
  await page.locator('input[name=password]').fill('any')
  await page.locator('button[type=submit]').click()
  // The consent.
  await page.locator('button[type=submit]').click()
  await page.waitForURL(`${base}/app/links`)
  expect(await page.locator('tbody').textContent()).toContain('example.com/of-bob')

  await page.goto(`${base}/app/account/security`)
  expect(await page.locator('main').textContent()).toContain(`http://127.0.0.1:${issuerPort}`)
  await context.clearCookies({ name: 'hopcode' })
  await signIn('/app/sign-in?next=/app/analytics')
  // The session at the provider goes on.
  await page.waitForURL(`${base}/app/analytics`)

  // Its session is proved for ten minutes; then the provider asks again.
  app.advance(11 * 60_000)
  await page.goto(`${base}/app/account/security`)
  await page.getByRole('button', { name: 'Connect Example SSO' }).click()
  await page.getByRole('link', { name: 'Confirm with Example SSO' }).click()
  await page.locator('input[name=login]').fill('ann')
  await page.locator('input[name=password]').fill('any')
  await page.locator('button[type=submit]').click()
  await page.waitForURL((url) => url.href.startsWith(`${base}/app/account`))
  await page.getByRole('button', { name: 'Connect Example SSO' }).click()
  expect(await page.getByRole('link', { name: 'Continue to Example SSO' }).count()).toBe(1)
  // The page that asks for a confirmation.
  expect(problems).toEqual([expect.stringContaining('403')])
  await context.close()
})
