import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { rawRequest } from '../support/conversation.ts'
import { setUpOwner } from '../support/dashboard.ts'

/** Signs behind a link that belong to the text in which it was sent. */

const SIGNS = [
  ...'.,)!;:\'"]>}…*?`|~<([{«»“”„‘’–—、。，．！？：；）］｝」』】〉》〕・؟،।',
  ...'\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u202c \u00a0\u3000\u2028',
  ').',
  '!!!',
  ' )',
  '.”',
  '…\u200b',
  '.'.repeat(1000),
]

const encode = (text: string) =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

async function hitsOf(app: TestApp, code: string): Promise<unknown> {
  return (await app.call('GET', `/api/lookup/${code}`)).body.hit_count
}

test('signs behind a code are dropped, and the redirect counts as a hit', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '0' } })
  await app.claim('SPRING26')
  for (const [n, sign] of SIGNS.entries()) {
    const { status, headers } = await app.call('GET', `/spring26${encode(sign)}?a=b`)
    expect([sign, status, headers.get('location')]).toEqual([
      sign,
      302,
      'https://example.com/landing',
    ])
    expect(headers.get('x-service-code')).toBe('SPRING26')
    expect(await hitsOf(app, 'SPRING26')).toBe(n + 1)
  }
})

test('signs that are sent as they are, without an encoding, are dropped too', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  for (const sign of ['.', ',', ')', '!', ';', ':', "'", '"', ']', '>', '…', '。', '\u200b']) {
    const { status, headers } = await rawRequest(app.url, [`GET /SPRING26${sign} HTTP/1.1`])
    expect([sign, status, headers.get('x-service-code')]).toEqual([sign, 302, 'SPRING26'])
  }
})

test('a path is asked as a whole first: it may be an alias', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  await app.claim('SPRING26', 'https://example.com/code')
  await app.claim('OTHER26', 'https://example.com/alias')
  app.administer(({ db }) => {
    const add = db.query(
      `INSERT INTO aliases (path, link_id, folded, any_case)
       SELECT ?, id, NULL, 0 FROM links WHERE code = 'OTHER26'`,
    )
    for (const path of ['SPRING26.', 'promo/x']) add.run(path)
  })
  const expected = [
    ['/SPRING26.', 'https://example.com/alias'],
    ['/SPRING26..', 'https://example.com/code'],
    ['/SPRING26!', 'https://example.com/code'],
    ['/promo/x', 'https://example.com/alias'],
    ['/promo/x).', 'https://example.com/alias'],
  ]
  for (const [path = '', location] of expected) {
    const { status, headers } = await app.call('GET', path)
    expect([path, status, headers.get('location')]).toEqual([path, 302, location ?? null])
  }
})

test('an unknown code with signs is the 404 of what was asked, and so is a paused one', async () => {
  await using app = await testApp()
  await app.claim('PAUSED26')
  await app.call('PATCH', '/api/links/PAUSED26', { key: 'free', json: { paused: true } })
  for (const [path, asked] of [
    ['/NOSUCH26.', 'NOSUCH26.'],
    ['/paused26).', 'PAUSED26).'],
    ['/PAUSED26%E3%80%82', 'PAUSED26。'],
    ['/...', '...'],
  ]) {
    const answer = await app.call('GET', path ?? '')
    expect([path, answer.status, answer.body]).toEqual([
      path,
      404,
      { error: `Code not found: ${asked}` },
    ])
    expect(answer.headers.get('x-ratelimit-limit')).toBe('300')
  }
})

test('what belongs to URLs, and what stands before a code, is not dropped', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  for (const path of ['/SPRING26-', '/SPRING26_', '/SPRING26%25', '/SPRING26@', '/.SPRING26']) {
    expect([path, (await app.call('GET', path)).status]).toEqual([path, 404])
  }
  for (const path of [
    '/SPRING26.x',
    '/SPRING26%00',
    '/SPRING26%0A',
    '/SPRING26./x',
    '/api/lookup/SPRING26.',
  ]) {
    expect([path, (await app.call('GET', path)).status]).toEqual([path, 404])
  }
})
