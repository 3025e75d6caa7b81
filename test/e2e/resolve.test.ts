import { expect, test } from 'bun:test'
import { disableLink, enableLink } from '../support/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'

/** Places that ask for a link take any text that redirects to it. */

const CODE = 'SPRING26'
const ALIAS = 'Café/menü 1'
const ALL = { env: { IMPORT_ALIASES: 'all', BASE_URL: 'https://hop.example' } }
const PATH = ALIAS.split('/').map(encodeURIComponent).join('/')

const NAMES = [
  CODE,
  'spring26',
  ' spring26 ',
  '/spring26',
  '(spring26).',
  'spring26?utm_source=poster#top',
  'https://hop.example/SPRING26',
  'HTTPS://HOP.Example/spring26/',
  'https://hop.example/spring26/?utm_source=poster#top',
  'spring26/?a=b',
  `${ALIAS}/`,
  `https://hop.example/${PATH}/?a=b`,
  'http://hop.example/spring26',
  'hop.example/spring26',
  '//hop.example/spring26',
  '<https://hop.example/spring26?a=b>,',
  '“hop.example/spring26”!',
  'https://hop.example/spring26+',
  'Somebody sent me https://hop.example/spring26. Please check',
  '「hop.example/spring26」。',
  '\u200bhttps://hop.example/spring26\u2060',
  'https%3A%2F%2Fhop.example%2Fspring26',
  'https://hop.example/%53PRING26',
  ALIAS,
  ALIAS.toUpperCase(),
  ALIAS.normalize('NFD'),
  `/${ALIAS}`,
  PATH,
  encodeURIComponent(ALIAS),
  `https://hop.example/${PATH}`,
  `https://hop.example/${ALIAS}`,
  `hop.example/${PATH}?a=1`,
  `(https://hop.example/${PATH})…`,
]
const NOT_NAMES = [
  'https://other.example/SPRING26',
  'other.example/SPRING26',
  'https://hop.example/',
  'hop.example',
  'https://hop.example:444/SPRING26',
  'https://hop.example/x/SPRING26',
  'café/menü 2',
  'SPRING2',
  '%zz',
  '((((',
  '?',
]

async function started(): Promise<TestApp> {
  const app = await testApp(ALL)
  await app.claim(CODE, 'https://example.com/landing')
  const json = { aliases: [ALIAS, 'loud!'] }
  await app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
  return app
}

test('the endpoints of one link find it by each text, and for its account only', async () => {
  await using app = await started()
  const get = (text: string, rest = '', key = 'free') =>
    app.call('GET', `/api/links/${encodeURIComponent(text)}${rest}`, { key })
  for (const name of NAMES) {
    expect([name, (await get(name)).body.code]).toEqual([name, CODE])
  }
  for (const rest of ['/hits', '/visits']) {
    expect(await get(`https://hop.example/${PATH}`, rest)).toMatchObject({ body: { code: CODE } })
  }
  expect(await get('loud!')).toMatchObject({ body: { code: CODE } })
  expect(await get('(loud!)')).toMatchObject({ body: { code: CODE } })
  for (const name of NOT_NAMES) expect([name, (await get(name)).status]).toEqual([name, 404])
  expect((await get(ALIAS, '', 'pro')).status).toBe(404)
  const title = await app.call('PATCH', `/api/links/${encodeURIComponent(ALIAS)}`, {
    key: 'free',
    json: { title: 'By alias' },
  })
  expect(title).toMatchObject({ status: 200, body: { code: CODE, title: 'By alias' } })
})

test('lookups of the contract take codes only', async () => {
  await using app = await started()
  for (const path of ['lookup', 'qr', 'qr-image']) {
    expect((await app.call('GET', `/api/${path}/spring26`)).status).toBe(200)
    expect((await app.call('GET', `/api/${path}/${encodeURIComponent('loud!')}`)).status).toBe(404)
  }
})

test('moderation by alias or short URL disables the code of the link', async () => {
  await using app = await started()
  for (const name of NAMES) {
    expect(await disableLink(app, name, 'spam')).toStartWith(`${CODE} is disabled`)
    expect((await app.call('GET', `/${PATH}`)).status).toBe(410)
    expect((await app.call('GET', `/${CODE}`)).status).toBe(410)
    expect(await enableLink(app, name)).toBe(`${CODE} is enabled.`)
    expect((await app.call('GET', `/${PATH}`)).status).toBe(302)
  }
  for (const name of NOT_NAMES) {
    await expect(disableLink(app, name, 'spam')).rejects.toThrow('no link has the code')
  }
})

test('a code that was disabled before its link was deleted is enabled by its short URL', async () => {
  await using app = await testApp(ALL)
  const { passcode } = await app.claim(CODE, 'https://example.com/landing')
  await disableLink(app, CODE, 'spam')
  await app.call('POST', '/api/delete', { key: 'free', json: { code: CODE, passcode } })
  expect(await enableLink(app, 'https://hop.example/spring26')).toBe(`${CODE} is enabled.`)
})
