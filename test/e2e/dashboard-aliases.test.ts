import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { makeMember } from '../support/members.ts'

/** Aliases on the page of a link. */

const PATH = '/app/links/SPRING26'

test('an account that may have aliases adds and removes them on the page of a link', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const change = (fields: Record<string, string>) =>
    free.post(`${PATH}/aliases`, fields, { from: PATH })
  const aliases = async () =>
    (await app.call('GET', '/api/links/SPRING26', { key: 'free' })).body.aliases
  for (const add of ['/spring-sale', 'http://hop.test/gr%C3%BC%C3%9Fe', '<i>&"']) {
    expect((await change({ add })).status).toBe(303)
  }
  expect(await aliases()).toEqual(['<i>&"', 'grüße', 'spring-sale'])
  const { text } = await free.get(PATH)
  expect(text).toContain('http://hop.test/&lt;i&gt;&amp;')
  expect(text).not.toContain('<i>')
  const refused = await change({ add: 'app/links' })
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('Path already in use: app/links')
  expect((await change({ remove: '<i>&"' })).status).toBe(303)
  expect(await aliases()).toEqual(['grüße', 'spring-sale'])
})

test('changes in several tabs at once are all kept, up to the maximum', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const change = (fields: Record<string, string>) =>
    free.post(`${PATH}/aliases`, fields, { from: PATH })
  const aliases = async () =>
    (await app.call('GET', '/api/links/SPRING26', { key: 'free' })).body.aliases as string[]
  const paths = Array.from({ length: 12 }, (_, n) => `path-${n}`)
  await change({ add: 'old-path' })
  await Promise.all([...paths.map((add) => change({ add })), change({ remove: 'old-path' })])
  expect((await aliases()).toSorted()).toEqual(paths.toSorted())
  const more = Array.from({ length: 9 }, (_, n) => `more-${n}`)
  const answers = await Promise.all(more.map((add) => change({ add })))
  expect(answers.filter(({ status }) => status === 303)).toHaveLength(8)
  expect(await aliases()).toHaveLength(20)
})

test('the page of a member who may not have aliases does not offer them', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  expect((await free.get(PATH)).text).not.toContain('New alias')
  const refused = await free.post(`${PATH}/aliases`, { add: 'a-b' }, { from: PATH })
  expect(refused.status).toBe(403)
})
