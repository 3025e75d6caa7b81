import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MINUTE } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import type { Seen, Visitor } from '../support/dashboard.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'
import { makeMember } from '../support/members.ts'
import { sharedApp } from '../support/shared.ts'

/** The properties of a link in the form of its page. */

const CODE = 'SPRING26'
const OVERVIEW = `/app/links/${CODE}`
const PATH = `${OVERVIEW}/settings`
const BERLIN = 'Europe/Berlin'

async function freeWithLink(app: TestApp, { zone = 'UTC' } = {}): Promise<Visitor> {
  const free = await makeMember(app, 'free@example.com')
  await app.claim(CODE)
  if (zone !== 'UTC') {
    await free.post('/app/account/time-zone', { zone }, { from: '/app/account' })
  }
  return free
}

/** The fields of the form as a browser would send them, unchanged. */
function fieldsOf({ text }: Seen): Record<string, string> {
  const form = /<form[^>]*\/settings"[\s\S]*?<\/form>/.exec(text)?.[0] ?? ''
  const fields: Record<string, string> = {}
  for (const [tag] of form.matchAll(/<input[^>]*>/g)) {
    const name = /name="(\w+)"/.exec(tag)?.[1] ?? ''
    if (/type="checkbox"/.test(tag) && !/ checked/.test(tag)) continue
    fields[name] = decoded(/ value="([^"]*)"/.exec(tag)?.[1] ?? '')
  }
  fields.note = decoded(/<textarea[^>]*>\n([^<]*)/.exec(form)?.[1] ?? '').replaceAll('\n', '\r\n')
  return fields
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decoded = (text: string) => text.replace(/&([\w#]+);/g, (_, name) => ENTITIES[name] ?? '')

/** Changes some fields of the page and sends the form. */
async function save(
  visitor: Visitor,
  changed: Record<string, string>,
  { page, headers = {} }: { page?: Seen; headers?: Record<string, string> } = {},
): Promise<Seen> {
  const fields = { ...fieldsOf(page ?? (await visitor.get(PATH))), ...changed }
  return visitor.post(PATH, fields, { headers })
}

const stored = async (app: TestApp) =>
  (await app.call('GET', `/api/links/${CODE}`, { key: 'free' })).body

const ALL = {
  title: 'Spring & “summer” <poster>',
  tags: ' Poster, spring   2026,, poster ',
  note: 'Line one\r\nLine two',
  paused: '1',
  starts_at: '2026-04-01T00:00',
  expires_at: '2026-05-01T12:30',
  max_hits: '1000000000',
  expired_url: 'example.com/over',
  forward_query: '1',
  forward_path: '1',
  no_index: '1',
}
const STORED = {
  title: 'Spring & “summer” <poster>',
  tags: ['poster', 'spring 2026'],
  note: 'Line one\nLine two',
  paused: true,
  starts_at: '2026-04-01T00:00:00.000Z',
  expires_at: '2026-05-01T12:30:00.000Z',
  max_hits: 1_000_000_000,
  expired_url: 'https://example.com/over',
  forward_query: true,
  forward_path: 'append',
  no_index: true,
}
const NONE = {
  title: null,
  tags: [],
  note: null,
  paused: false,
  starts_at: null,
  expires_at: null,
  max_hits: null,
  expired_url: null,
  forward_query: false,
  forward_path: 'off',
  no_index: false,
}

test.each([
  ['without htmx', {}],
  ['with htmx', { 'hx-request': 'true', 'hx-target': 'main' }],
])('each property is set, kept and cleared in the form, %s', async (_, headers) => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  for (const [name, text] of Object.entries(ALL)) {
    expect((await save(free, { [name]: text }, { headers })).location).toBe(`${PATH}?done=saved`)
  }
  expect(await stored(app)).toMatchObject(STORED)
  const page = await free.get(`${PATH}?done=saved`)
  expect(page.text).toMatch(/role="status">Saved/)
  expect(page.text).toContain('Spring &amp; “summer” &lt;poster&gt;</h1>')
  await save(free, {}, { page, headers })
  expect(await stored(app)).toMatchObject(STORED)
  for (const name of Object.keys(ALL)) await save(free, { [name]: '' }, { headers })
  expect(await stored(app)).toMatchObject(NONE)
})

const times = [
  { typed: '2026-03-01T21:00', utc: '2026-03-01T20:00:00.000Z' },
  { typed: '2026-03-29T03:00', utc: '2026-03-29T01:00:00.000Z' },
  { typed: '2026-07-01T00:00', utc: '2026-06-30T22:00:00.000Z' },
  // The first of two: clocks go back at 3:00.
  { typed: '2026-10-25T02:30', utc: '2026-10-25T00:30:00.000Z' },
]
test.each(times)('a time is one of the account’s time zone: $typed is $utc', async (time) => {
  await using app = await testApp()
  const free = await freeWithLink(app, { zone: BERLIN })
  await save(free, { expires_at: time.typed })
  expect((await stored(app)).expires_at).toBe(time.utc)
  const page = await free.get(PATH)
  expect(fieldsOf(page).expires_at).toBe(time.typed)
  expect(page.text).toContain('Times in Europe/Berlin.')
})

test('a time keeps its seconds, and a form its time zone, until the field is changed', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app, { zone: BERLIN })
  const expires_at = '2026-10-25T01:30:45.678Z'
  await app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json: { expires_at } })
  await save(free, { title: 'Poster' })
  expect(await stored(app)).toMatchObject({ expires_at, title: 'Poster' })
  const page = await free.get(PATH)
  expect((await free.get(OVERVIEW)).text).toContain(
    'until 25 Oct 2026, 02:30 (Europe/Berlin, UTC+01:00)',
  )
  await free.post('/app/account/time-zone', { zone: 'UTC' }, { from: '/app/account' })
  await save(free, { expires_at: '2026-03-02T21:00' }, { page })
  expect((await stored(app)).expires_at).toBe('2026-03-02T20:00:00.000Z')
})

test('two tabs keep each other’s changes', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const page = await free.get(PATH)
  await save(free, { title: 'First tab', tags: 'one', paused: '1' }, { page })
  const refused = await save(free, { note: 'Second tab', max_hits: '0' }, { page })
  expect(refused.status).toBe(422)
  await save(free, { max_hits: '5' }, { page: refused })
  expect(await stored(app)).toMatchObject({
    title: 'First tab',
    tags: ['one'],
    paused: true,
    note: 'Second tab',
    max_hits: 5,
  })
})

const refusals = [
  { field: 'title', text: 'a'.repeat(201) },
  { field: 'note', text: 'a'.repeat(2001) },
  { field: 'tags', text: `good, ${'a'.repeat(41)}` },
  { field: 'tags', text: Array.from({ length: 21 }, (_, n) => `t${n}`).join(', ') },
  { field: 'starts_at', text: 'tomorrow' },
  { field: 'expires_at', text: '2026-02-30T12:00' },
  // Clocks go forward from 2:00 to 3:00.
  { field: 'expires_at', text: '2026-03-29T02:30' },
  { field: 'starts_at', text: '2026-06-01T12:00' },
  { field: 'expires_at', text: '2026-03-01T00:00' },
  { field: 'max_hits', text: '0' },
  { field: 'max_hits', text: '1.5' },
  { field: 'max_hits', text: '1000000001' },
  { field: 'expired_url', text: 'javascript:alert(1)' },
  { field: 'expired_url', text: 'http://hop.test/SPRING26' },
]
const inBerlin = sharedApp(async (app) => ({ free: await freeWithLink(app, { zone: BERLIN }) }))

test.each(refusals)(
  'a refused $field is marked with the reason, and nothing is saved (%#)',
  async ({ field, text }) => {
    const { app, free } = await inBerlin()
    app.advance(MINUTE)
    await save(free, { starts_at: '2026-03-20T12:00', expires_at: '2026-05-01T12:00' })
    const before = await stored(app)
    const seen = await save(free, { forward_query: '1', [field]: text })
    expect([seen.status, seen.invalid]).toEqual([422, [field]])
    expect(seen.text).toMatch(new RegExp(`id="field-${field}-error">[^<]`))
    expect(seen.text).toMatch(
      new RegExp(`id="field-${field}"[^>]*aria-invalid="true"[^>]*autofocus`),
    )
    expect(seen.text).not.toContain('class="notice bad"')
    expect(fieldsOf(seen)).toMatchObject({ [field]: text, forward_query: '1' })
    expect(await stored(app)).toEqual(before)
  },
)

test('a host on the blocklist is refused as destination after expiry', async () => {
  const folder = temporaryFolderInMemory()
  const file = join(folder.path, 'blocklist.txt')
  writeFileSync(file, 'evil.example\n')
  await using app = await testApp({ env: { BLOCKLIST_FILES: file } })
  const free = await freeWithLink(app)
  const seen = await save(free, { expired_url: 'https://evil.example/', title: 'Kept in the form' })
  expect(seen.status).toBe(422)
  expect(seen.text).toMatch(/id="field-expired_url-error">[^<]*abuse blocklist/)
  expect(fieldsOf(seen).title).toBe('Kept in the form')
  expect(await stored(app)).toMatchObject(NONE)
})

test('what is too long for its field is not sent back', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const seen = await save(free, { title: "'".repeat(9000), note: '&'.repeat(9000) })
  expect(seen.status).toBe(422)
  expect(seen.text.length).toBeLessThan(100_000)
  expect(fieldsOf(seen)).toMatchObject({ title: '', note: '' })
})

test('invisible characters stay as they are, and the largest page is below 200 kB', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const unseen = '\u{e0041}'
  const json = {
    title: `a${unseen.repeat(198)}b`,
    note: `a${unseen.repeat(1998)}b`,
    tags: Array.from({ length: 20 }, (_, n) => `${n + 10}${unseen.repeat(37)}z`),
    expired_url: `https://example.com/${"'".repeat(8000)}`,
  }
  await app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
  await free.post(PATH, { url: `https://example.com/${"'".repeat(8000)}` })
  const { text } = await free.get(PATH)
  expect(text).toContain('%F3%A0%81%81')
  expect(Buffer.byteLength(text)).toBeLessThan(200_000)
  const shorter = { note: `a${unseen.repeat(300)}b`, expired_url: null }
  await app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json: shorter })
  await save(free, { max_hits: '7' })
  expect((await save(free, { max_hits: '0' })).status).toBe(422)
  await save(free, { max_hits: '8' }, { page: await save(free, { max_hits: '0' }) })
  expect(await stored(app)).toMatchObject({ ...json, ...shorter, max_hits: 8 })
})

test('a form costs one write, also a refused one', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  const page = await free.get(PATH)
  const left = async () => {
    const { headers } = await app.call('POST', '/api/reserve', { key: 'free', json: {} })
    return Number(headers.get('x-ratelimit-remaining'))
  }
  const before = await left()
  await save(free, { title: 'One' }, { page })
  await save(free, { max_hits: '0' }, { page })
  expect(before - (await left())).toBe(3)
  let seen: Seen
  do {
    seen = await save(free, { title: 'Kept' }, { page })
  } while (seen.status === 303)
  expect(seen.status).toBe(429)
  expect(seen.text).toContain('class="notice bad"')
  expect(fieldsOf(seen).title).toBe('Kept')
})

test('the page says in one sentence what visitors get', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app, { zone: BERLIN })
  const sentence = async () =>
    /<p class="hint">(Visitors [\s\S]*?)<\/p>/
      .exec((await free.get(OVERVIEW)).text)?.[1]
      ?.replace(/<[^>]*>/g, '')
  const visit = async () => (await app.call('GET', `/${CODE}`)).status
  expect(await sentence()).toBe('Visitors are redirected to the destination.')
  await save(free, { expires_at: '2026-03-01T13:20', max_hits: '2' })
  expect(await sentence()).toBe(
    'Visitors are redirected to the destination until 1 Mar 2026, 13:20 (Europe/Berlin), and for 2 more hits.',
  )
  expect([await visit(), await visit(), await visit()]).toEqual([302, 302, 410])
  await eventually('the hits are counted', async () =>
    /after 2 hits/.test((await sentence()) ?? ''),
  )
  expect(await sentence()).toBe('Visitors get 410 “Link expired” after 2 hits.')
  await save(free, { max_hits: '', starts_at: '2026-03-01T13:10' })
  expect(await sentence()).toBe('Visitors get 404 until 1 Mar 2026, 13:10 (Europe/Berlin).')
  expect(await visit()).toBe(404)
  app.advance(25 * 60_000)
  await save(free, { expired_url: 'https://example.com/over' })
  expect(await sentence()).toBe(
    'Visitors are redirected to https://example.com/over since 1 Mar 2026, 13:20 (Europe/Berlin).',
  )
  expect(await visit()).toBe(302)
  await free.post(`${OVERVIEW}/delete`, {}, { from: OVERVIEW })
  expect(await sentence()).toBe('Visitors get 404, because the link is deleted.')
  await free.post(`${OVERVIEW}/undo-delete`, {}, { from: OVERVIEW })
  expect(await sentence()).toContain('since 1 Mar 2026')
})

test('tags of the account are suggested, and none of another account', async () => {
  await using app = await testApp()
  const free = await freeWithLink(app)
  await app.claim('OTHER26', 'https://example.com/other', 'pro')
  const tag = (code: string, key: string, tags: string[]) =>
    app.call('PATCH', `/api/links/${code}`, { key, json: { tags } })
  await tag(CODE, 'free', ['poster'])
  await tag('OTHER26', 'pro', ['others'])
  const { text } = await free.get(PATH)
  expect(text).toContain('<option value="poster">')
  expect(text).not.toContain('others')
})
