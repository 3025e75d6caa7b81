import { expect } from 'bun:test'
import type { CallOptions, TestApp } from './app.ts'

/** A link with a password, and its visitors. */

export const LOCKED = 'LOCKED26'
export const SECRET_URL = 'https://d.example/x'
export const WORD = 'open sesame'

export const BROWSER = {
  accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
}

export async function setPassword(app: TestApp, password: string | null, code = LOCKED) {
  const answer = await app.call('PATCH', `/api/links/${code}`, { key: 'free', json: { password } })
  expect(answer).toMatchObject({ status: 200, body: { protected: password !== null } })
  expect(answer.text).not.toContain(password ?? 'argon2')
  expect(answer.text).not.toContain('argon2')
}

export async function withPassword(app: TestApp, code = LOCKED, url = SECRET_URL) {
  await app.claim(code, url)
  await setPassword(app, WORD, code)
}

export const send = (app: TestApp, password: string, path = `/${LOCKED}`, more: CallOptions = {}) =>
  app.call('POST', path, {
    ...more,
    raw: new URLSearchParams({ password }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...more.headers },
  })

export const basic = (password: string, user = '') => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})

/** The cookie of a response as a browser sends it. */
export const cookieOf = ({ headers }: { headers: Headers }) => ({
  cookie: (headers.get('set-cookie') ?? '').split(';')[0] ?? '',
})

export const hitsOf = async (app: TestApp, code = LOCKED) =>
  (await app.call('GET', `/api/lookup/${code}`)).body.hit_count as number
