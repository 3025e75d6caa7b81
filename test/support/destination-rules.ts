import { expect } from 'bun:test'
import type { CallOptions, TestApp } from './app.ts'

/** A link with five destinations by rule, and its visitors. */

export const CODE = 'MENU2026'
export const Z = 'https://rest.example/z'
const at = (name: string) => `https://${name}.example/${name}`
export const [A, B, C, D, E] = ['a', 'b', 'c', 'd', 'e'].map(at) as [
  string,
  string,
  string,
  string,
  string,
]
export const BERLIN = 'Europe/Berlin'

export const FIVE = [
  { when: { os: ['ios'] }, url: A },
  { when: { os: ['android'] }, url: B },
  { when: { language: ['de'] }, url: C },
  { when: { query: { v: '2' } }, url: D },
  { when: { days: ['sat', 'sun'], hours: '18:00-02:00', zone: BERLIN }, url: E },
]

const WEBKIT = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'
const agent = (system: string, rest: string) => `Mozilla/5.0 (${system}) ${rest}`
const chrome = (system: string, mobile = '') =>
  agent(system, `AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 ${mobile}Safari/537.36`)
const safari = (system: string, version: string) =>
  agent(system, `${WEBKIT} Version/${version} Safari/604.1`)

export const IPHONE = safari('iPhone; CPU iPhone OS 17_5 like Mac OS X', '17.5 Mobile/15E148')
export const IPAD = safari('iPad; CPU OS 12_5 like Mac OS X', '12.1 Mobile/15E148')
export const MAC = safari('Macintosh; Intel Mac OS X 10_15_7', '17.5')
export const ANDROID = chrome('Linux; Android 10; K', 'Mobile ')
export const ANDROID_TABLET = chrome('Linux; Android 10; K')
export const TELEVISION = chrome('Linux; Android 9; BRAVIA 4K UR2')
export const LINUX = chrome('X11; Linux x86_64')
export const CHROMEBOOK = chrome('X11; CrOS x86_64 14541.0.0')
export const WINDOWS = agent(
  'Windows NT 10.0; Win64; x64; rv:127.0',
  'Gecko/20100101 Firefox/127.0',
)

export type Headers = Record<string, string>
export interface Visit extends CallOptions {
  query?: string
  method?: string
  code?: string
}

export const visit = (
  app: TestApp,
  { query = '', method = 'GET', code = CODE, ...options }: Visit = {},
) => app.call(method, `/${code}${query}`, options)

export async function placeOf(app: TestApp, headers: Headers = {}, more: Visit = {}) {
  const { status, headers: got } = await visit(app, { ...more, headers })
  expect(status).toBe(302)
  expect(got.get('cache-control')).toBe('no-store')
  return got.get('location')
}

export const ua = (agent: string): Headers => ({ 'user-agent': agent })
export const languages = (list: string): Headers => ({ 'accept-language': list, ...ua(LINUX) })

export const patch = (app: TestApp, json: object, code = CODE) =>
  app.call('PATCH', `/api/links/${code}`, { key: 'free', json })

export async function withRules(app: TestApp, destinations: object[] = FIVE, more: object = {}) {
  await app.claim(CODE, Z)
  const answer = await patch(app, { destinations, ...more })
  expect(answer).toMatchObject({ status: 200, body: { destinations } })
}

/** Moves the wall clock to a local time in Berlin in the summer or winter. */
export const setTime = (app: TestApp, time: string) => app.stepWall(Date.parse(time) - app.now())
