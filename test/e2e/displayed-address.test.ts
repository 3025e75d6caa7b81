import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { invalid } from '../support/refusals.ts'

/** The address of a link that people see: an alias, else the code. */

const CODE = 'SPRING26'
const ALL = { env: { IMPORT_ALIASES: 'all' } }

async function linkOf(app: Awaited<ReturnType<typeof testApp>>) {
  await app.claim(CODE, 'https://example.com/landing')
  const call = (method: string, json?: object) =>
    app.call(method, `/api/links/${CODE}`, { key: 'free', ...(json && { json }) })
  return {
    patch: (json: object) => call('PATCH', json),
    shown: async () => {
      const { body } = await call('GET')
      return [String(body.display_url).replace(/^https?:\/\/[^/]+\//, ''), body.display_alias]
    },
  }
}

test('the newest alias is displayed until another one is chosen, and the code without one', async () => {
  await using app = await testApp(ALL)
  const { patch, shown } = await linkOf(app)
  expect(await shown()).toEqual([CODE, null])
  await patch({ aliases: ['m-first'] })
  expect(await shown()).toEqual(['m-first', null])
  await patch({ aliases: ['a-second', 'm-first'] })
  expect(await shown()).toEqual(['a-second', null])
  await patch({ display_alias: 'm-first' })
  expect(await shown()).toEqual(['m-first', 'm-first'])
  await patch({ aliases: ['a-second', 'm-first', 'z-third'] })
  expect(await shown()).toEqual(['m-first', 'm-first'])
  await patch({ display_alias: null })
  expect(await shown()).toEqual(['z-third', null])
  await patch({ display_alias: 'a-second' })
  await patch({ aliases: ['m-first', 'z-third'] })
  expect(await shown()).toEqual(['z-third', null])
  await patch({ aliases: null })
  expect(await shown()).toEqual([CODE, null])
  expect(problemsOf(app)).toEqual([])
})

test('an alias can be added and displayed in one change, in either Unicode form', async () => {
  await using app = await testApp(ALL)
  const { patch, shown } = await linkOf(app)
  const change = { aliases: ['grüße/wörld', 'b-b'], display_alias: 'grüße/wörld'.normalize('NFD') }
  expect(await patch(change)).toMatchObject({
    status: 200,
    body: { display_alias: 'grüße/wörld', short_url: expect.stringMatching(/\/SPRING26$/) },
  })
  expect((await shown())[0]).toBe('gr%C3%BC%C3%9Fe/w%C3%B6rld')
})

test.each([['other-path'], ['SPRING26'], [5], ['']])(
  'display_alias %j is refused, and nothing is changed',
  async (display_alias) => {
    await using app = await testApp(ALL)
    const { patch, shown } = await linkOf(app)
    await patch({ aliases: ['m-first', 'z-second'] })
    const error = invalid('display_alias')
    expect(await patch({ title: 'New', display_alias })).toMatchObject({
      status: 400,
      body: { error },
    })
    expect(await shown()).toEqual(['z-second', null])
  },
)

test('the endpoints of the contract keep the code, and exports have the displayed address', async () => {
  await using app = await testApp(ALL)
  const { patch } = await linkOf(app)
  await patch({ aliases: ['printed', 'spare'], display_alias: 'printed' })
  const address = expect.stringMatching(/\/SPRING26$/)
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  expect(body.items).toMatchObject([{ short_url: address }])
  expect(await app.call('GET', `/api/qr-image/${CODE}`)).toMatchObject({
    body: { short_url: address },
  })
  const again = await app.call('POST', '/api/shorten', {
    key: 'free',
    json: { url: 'https://example.com/landing' },
  })
  expect(again).toMatchObject({ status: 200, body: { short_url: address, reused: true } })
  expect(again.body).not.toHaveProperty('alias')
  const csv = await app.call('GET', '/api/export?format=csv', { key: 'free' })
  expect(csv.text).toMatch(/^https?:\/\/[^,]+\/printed,SPRING26,/m)
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  expect(JSON.parse(text.trim().split('\n')[1] ?? '')).toMatchObject({
    aliases_any_case: ['printed', 'spare'],
    display_alias: 'printed',
  })
})

test('an import displays the alias that the export did', async () => {
  await using app = await testApp(ALL)
  const raw = JSON.stringify({ code: CODE, url: 'https://a.example/', aliases: ['zz', 'bb', 'mm'] })
  const headers = { 'content-type': 'application/x-ndjson' }
  await app.call('POST', '/api/import', { key: 'free', headers, raw })
  const { body } = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
  expect(body.display_url).toEqual(expect.stringMatching(/\/zz$/))
})
