import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { makeMember } from '../support/members.ts'

/** Searches that a person pastes or types. */

const ALL = { env: { IMPORT_ALIASES: 'all' } }

test('a pasted short URL finds its link, in lists of the API and of the dashboard', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26', 'https://example.com/landing')
  await app.claim('OTHER026', 'https://example.com/menu')
  const json = { aliases: ['menu', 'grüße'] }
  await app.call('PATCH', '/api/links/SPRING26', { key: 'free', json })
  for (const text of [
    'http://hop.test/SPRING26',
    'hop.test/spring26',
    'HTTP://HOP.TEST/menu',
    '(http://hop.test/menu).',
    'http://hop.test/gr%C3%BC%C3%9Fe?a=1',
    'hop.test/grüße',
    'http://hop.test/menu/?utm_source=x',
    'hop.test/SPRING26/?a',
    '/SPRING26',
    '/spring26/',
    '/grüße',
    '/gr%C3%BC%C3%9Fe/',
  ]) {
    const query = encodeURIComponent(text)
    const { body } = await app.call('GET', `/api/list?search=${query}`, { key: 'free' })
    expect([text, body.items]).toMatchObject([text, [{ code: 'SPRING26' }]])
    expect(body.total).toBe(1)
    const other = await app.call('GET', `/api/list?search=${query}`, { key: 'pro' })
    expect(other.body.total).toBe(0)
    const page = await free.get(`/app/links?q=${query}`)
    expect(page.text).toContain('value="SPRING26"')
    expect(page.text).not.toContain('value="OTHER026"')
    // The export has what the list shows.
    const csv = await free.get(`/app/links/export.csv?q=${query}`)
    expect([text, csv.text.match(/^[A-Z0-9]{8}(?=,)/gm)]).toEqual([text, ['SPRING26']])
  }
})

test('a search for a path finds its alias, its code, and what contains it as before', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26', 'https://example.com/landing')
  await app.claim('OTHER026', 'https://example.com/menu/SPRING26')
  await app.claim('THIRD026', 'https://example.com/')
  await app.call('PATCH', '/api/links/SPRING26', {
    key: 'free',
    json: { aliases: ['menu', 'a b', 'm'] },
  })
  const codesOf = async (path: string) => {
    const { body } = await app.call('GET', path, { key: 'free' })
    return (body.items as { code: string }[]).map(({ code }) => code)
  }
  for (const text of ['/menu', '/SPRING26', '/MENU']) {
    for (const list of ['/api/list', '/api/links']) {
      const found = await codesOf(`${list}?search=${text}`)
      expect([list, text, found]).toEqual([list, text, ['OTHER026', 'SPRING26']])
    }
    const page = await free.get(`/app/links?q=${encodeURIComponent(text)}`)
    for (const code of ['OTHER026', 'SPRING26']) expect(page.text).toContain(`value="${code}"`)
    expect(page.text).not.toContain('value="THIRD026"')
  }
  for (const path of ['/api/list', '/api/links']) {
    expect([path, await codesOf(`${path}?search=/a%20b/`)]).toEqual([path, ['SPRING26']])
  }
  // In a URL.
  expect(await codesOf('/api/list?search=/land')).toEqual(['SPRING26'])
  expect(await codesOf('/api/list?search=/nothing')).toEqual([])
})

test('the dashboard finds several words in any field, and folds accents', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26', 'https://example.com/São-Paulo')
  const json = { title: 'Große Straße, Łódź', tags: ['print'], note: 'Crème brûlée' }
  await app.call('PATCH', '/api/links/SPRING26', { key: 'free', json })
  const isFound = async (text: string) => {
    const page = await free.get(`/app/links?q=${encodeURIComponent(text)}`)
    return page.text.includes('value="SPRING26"')
  }
  for (const text of [
    'sao paulo',
    'SÃO',
    'paulo strasse',
    'straße grosse',
    'lodz',
    'creme print spring26',
    'bru\u0302lee',
    'a  b e',
  ]) {
    expect([text, await isFound(text)]).toEqual([text, true])
  }
  for (const text of ['sao london', 'strassen', 'x']) {
    expect([text, await isFound(text)]).toEqual([text, text === 'x'])
  }
})

const SAME = [
  'https://bücher.example/größe',
  'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe',
  'https://bücher.example/gr%c3%b6%c3%9fe',
  'https://xn--bcher-kva.example/größe',
]

test('the dashboard finds a URL in each of its forms: letters, Punycode, percent-encoded', async () => {
  await using app = await testApp(ALL)
  const free = await makeMember(app, 'free@example.com')
  for (const [at, url] of SAME.entries()) await app.claim(`FORMOF${at}`, url)
  await app.claim('ANOTHER1', 'https://bcher.example/gre')
  const parts = [
    'bücher.example',
    'xn--bcher-kva',
    'größe',
    'gr%C3%B6%C3%9Fe',
    'gr%c3%b6',
    'bücher größe',
  ]
  for (const text of [...SAME, ...parts]) {
    const page = await free.get(`/app/links?q=${encodeURIComponent(text)}`)
    const found = [...page.text.matchAll(/value="((?:FORMOF|ANOTHER)\d)"/g)].map(([, code]) => code)
    expect([text, [...new Set(found)].sort()]).toEqual([text, SAME.map((_, at) => `FORMOF${at}`)])
  }
  const bad = await free.get('/app/links?q=%25zz%25E0%25A4xn--')
  expect(bad.status).toBe(200)
})
