import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { setUpOwner, type Visitor } from '../support/dashboard.ts'
import { GO, outcome, PRIMARY } from '../support/domains.ts'

/** Domains in the dashboard: their page, new links, the page of a link, and the account. */

const PATH = '/app/service/domains'
const URL_OF_LINK = 'https://example.com/menu'

let app: TestApp
let owner: Visitor
let key: string
beforeAll(async () => {
  app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  ;({ owner, key } = await setUpOwner(app))
})
afterAll(() => app[Symbol.asyncDispose]())

const linkOf = async (code: string) => (await app.call('GET', `/api/links/${code}`, { key })).body

test('an owner adds and changes a domain', async () => {
  expect((await owner.get('/app/links')).text).not.toContain('id="field-domain"')
  const added = await owner.post(PATH, { host: 'GO.example', for: 'all', codes: 'own' })
  expect([added.status, added.location]).toEqual([303, `${PATH}/${GO}?done=added`])
  const again = await owner.post(PATH, { host: GO })
  expect(again.invalid).toEqual(['host'])
  const page = `${PATH}/${GO}`
  const changed = await owner.post(page, { for: 'all', codes: 'own', root_url: 'brand.example' })
  expect(changed.location).toBe(`${page}?done=changed`)
  expect(await outcome(app, GO, '/')).toEqual([302, 'https://brand.example/'])
})

test('a new link has the chosen domain, with a code and with another path', async () => {
  const code = await owner.post('/app/links', {
    url: `${URL_OF_LINK}/1`,
    domain: GO,
    code: 'MENU01',
  })
  expect([code.status, code.invalid]).toEqual([200, []])
  expect(await linkOf('MENU01')).toMatchObject({ domain: GO, display_url: `http://${GO}/MENU01` })
  await owner.post('/app/links', { url: `${URL_OF_LINK}/2`, domain: GO, code: 'menu' })
  const named = await linkOf(`${GO}%2Fmenu`)
  expect(named).toMatchObject({ domain: GO, display_url: `http://${GO}/menu` })
  const typed = await owner.post('/app/links', {
    url: `${URL_OF_LINK}/3`,
    domain: GO,
    code: `http://${PRIMARY}/menu`,
  })
  expect(typed.invalid).toEqual([])
  expect(await outcome(app, PRIMARY, '/menu')).toEqual([302, `${URL_OF_LINK}/3`])
  expect(await outcome(app, GO, '/menu')).toEqual([302, `${URL_OF_LINK}/2`])
  const taken = await owner.post('/app/links', {
    url: `${URL_OF_LINK}/4`,
    domain: GO,
    code: 'menu',
  })
  expect(taken.invalid).toEqual(['code'])
  const free = await owner.get(`/app/links/code?code=lunch&domain=${GO}`)
  const used = await owner.get(`/app/links/code?code=menu&domain=${GO}`)
  expect([free.text, used.text].map((text) => />(Free|Taken)</.exec(text)?.[1])).toEqual([
    'Free',
    'Taken',
  ])
})

test('the page of a link changes its domain and its addresses', async () => {
  const path = '/app/links/MENU01'
  const moved = await owner.post(`${path}/settings`, { domain: '' }, { from: `${path}/settings` })
  expect(moved.status).toBe(303)
  expect(await linkOf('MENU01')).toMatchObject({ domain: null })
  expect(await outcome(app, GO, '/MENU01')).toEqual([404, 'Code not found: MENU01'])
  await owner.post(`${path}/settings`, { domain: GO }, { from: `${path}/settings` })
  await owner.post(`${path}/settings`, { on: GO, add: 'lunch' }, { from: `${path}/settings` })
  expect(await outcome(app, GO, '/lunch')).toEqual([302, `${URL_OF_LINK}/1`])
  expect((await owner.get(path)).text).toContain(`${GO}/lunch`)
  const unknown = await owner.post(
    `${path}/settings`,
    { domain: 'evil.example' },
    { from: `${path}/settings` },
  )
  expect(unknown.status).toBe(422)
  expect(await linkOf('MENU01')).toMatchObject({ domain: GO })
})

test('an account chooses the domain of its new links', async () => {
  const form = { from: '/app/account' }
  expect((await owner.post('/app/account/domain', { domain: GO }, form)).status).toBe(303)
  const json = { url: 'https://example.com/new' }
  const { body } = await app.call('POST', '/api/shorten', { key, json })
  expect(body.short_url).toBe(`http://${GO}/${body.code}`)
  expect((await owner.post('/app/account/domain', { domain: 'x.example' }, form)).status).toBe(400)
  await owner.post('/app/account/domain', { domain: '' }, form)
})

test('a short URL of a domain finds its link wherever a link is asked for', async () => {
  const code = String((await linkOf(`${GO}%2Fmenu`)).code)
  for (const text of [`${GO}/menu`, `http://${GO}/menu`, `“https://GO.example/menu”.`]) {
    const found = await owner.get(`/app/service/links?${new URLSearchParams({ code: text })}`)
    expect([text, found.status, `${found.location}${found.text}`.includes(code)]).toEqual([
      text,
      expect.any(Number),
      true,
    ])
  }
})

test('a domain in use is removed only if its links may move', async () => {
  const path = `${PATH}/${GO}/remove`
  const refused = await owner.post(path, {}, { from: `${PATH}/${GO}` })
  expect(refused.status).toBe(422)
  await owner.post(
    `/app/links/MENU01/settings`,
    { remove: `//${GO}/lunch` },
    {
      from: '/app/links/MENU01/settings',
    },
  )
  const conflict = await owner.post(path, { moves_links: '1' }, { from: `${PATH}/${GO}` })
  expect([conflict.status, conflict.text.includes('menu')]).toEqual([422, true])
  await owner.post(`/app/links/menu/settings`, { remove: 'menu' }, { from: '/app/links' })
  const code = String((await linkOf('menu')).code ?? '')
  if (code !== '') {
    await owner.post(
      `/app/links/${code}/settings`,
      { remove: 'menu' },
      {
        from: `/app/links/${code}/settings`,
      },
    )
  }
  const removed = await owner.post(path, { moves_links: '1' }, { from: `${PATH}/${GO}` })
  expect(removed.location).toBe(`${PATH}?done=removed`)
  expect(await outcome(app, PRIMARY, '/menu')).toEqual([302, `${URL_OF_LINK}/2`])
})
