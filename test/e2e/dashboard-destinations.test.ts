import { expect, test } from 'bun:test'
import { operatorOf } from '../../src/cli/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { PASSWORD, type Seen, Visitor } from '../support/dashboard.ts'
import { inviteTo, makeMember } from '../support/members.ts'

/** The page of a link's destinations by rule. */

const PAGE = '/app/links/SPRING26/destinations'
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1'

async function annWithLink(app: TestApp): Promise<Visitor> {
  const ann = await makeMember(app, 'ann@example.com')
  await ann.post('/app/links', { url: 'https://example.com/rest', code: 'SPRING26' })
  return ann
}

type Fields = Record<string, string | readonly string[]>

/** Sends a form of the page with the version that it shows. */
async function send(visitor: Visitor, fields: Fields): Promise<Seen> {
  const { text } = await visitor.get(PAGE)
  const version = /name="version" value="(\w+)"/.exec(text)?.[1] ?? ''
  return visitor.post(PAGE, { version, ...fields })
}

const add = (visitor: Visitor, fields: Fields) =>
  send(visitor, { action: 'save', at: '', ...fields })

/** Destination and conditions as they are stored. */
const stored = (app: TestApp): unknown[] =>
  app.administer(({ db }) => {
    const row = db
      .query<{ destinations: string | null }, []>('SELECT destinations FROM links')
      .get()
    return JSON.parse(row?.destinations ?? '[]')
  })

const urls = (app: TestApp) => stored(app).map((one) => (one as { url: string }).url)

const location = async (app: TestApp, agent: string): Promise<string | null> => {
  const headers = { 'user-agent': agent }
  const response = await fetch(`${app.url}/SPRING26`, { headers, redirect: 'manual' })
  return response.headers.get('location')
}

test('destinations are added, moved, changed and removed, and redirects follow', async () => {
  await using app = await testApp({ env: { COUNTRY_HEADER: 'cf-ipcountry' } })
  const ann = await annWithLink(app)
  const all = {
    url: 'example.com/all',
    os: ['ios', 'android'],
    device: ['phone'],
    language: 'de, pt-br',
    country: 'de at',
    query: 'v=2, preview',
    from: '2026-03-01T10:00',
    until: '2026-04-01T10:00',
    days: ['sun', 'sat'],
    hours: '18:00',
    hours_until: '02:00',
    zone: 'Europe/Berlin',
  }
  expect((await add(ann, all)).location).toBe(`${PAGE}?done=ruled`)
  expect((await add(ann, { url: 'https://example.com/ios', os: 'ios' })).status).toBe(303)
  expect(stored(app)).toEqual([
    {
      when: {
        os: ['android', 'ios'],
        device: ['phone'],
        language: ['de', 'pt-BR'],
        country: ['DE', 'AT'],
        query: { v: '2', preview: true },
        from: '2026-03-01T10:00:00.000Z',
        until: '2026-04-01T10:00:00.000Z',
        days: ['sat', 'sun'],
        hours: '18:00-02:00',
        zone: 'Europe/Berlin',
      },
      url: 'https://example.com/all',
    },
    { when: { os: ['ios'] }, url: 'https://example.com/ios' },
  ])
  expect(await location(app, IPHONE)).toBe('https://example.com/ios')

  expect((await send(ann, { at: '1', to: '0' })).status).toBe(303)
  expect(urls(app)).toEqual(['https://example.com/ios', 'https://example.com/all'])
  expect((await send(ann, { at: '0', to: '1' })).status).toBe(303)
  expect(urls(app)).toEqual(['https://example.com/all', 'https://example.com/ios'])

  const changed = { action: 'save', at: '1', url: 'https://example.com/mac', os: 'macos' }
  expect((await send(ann, changed)).status).toBe(303)
  expect(await location(app, IPHONE)).toBe('https://example.com/rest')
  expect((await send(ann, { action: 'remove', at: '0' })).status).toBe(303)
  expect(stored(app)).toEqual([{ when: { os: ['macos'] }, url: 'https://example.com/mac' }])
})

test('the form of a destination has what is stored, so that saving it changes nothing', async () => {
  await using app = await testApp()
  const ann = await annWithLink(app)
  const fields = {
    url: 'https://example.com/evening',
    language: 'de',
    query: 'v=2, preview',
    from: '2026-03-01T10:00',
    days: 'fri',
    hours: '18:00',
    hours_until: '02:00',
    zone: 'Asia/Tokyo',
  }
  await add(ann, fields)
  const before = stored(app)
  const { text } = await ann.get(`${PAGE}?edit=0`)
  const [, form = ''] = text.split('id="edit"')
  const fieldOf = (name: string) =>
    new RegExp(`name="${name}"[^>]*? value="([^"]*)"`).exec(form)?.[1] ?? ''
  const shown = Object.fromEntries(
    ['url', 'language', 'query', 'from', 'until', 'hours', 'hours_until'].map((name) => [
      name,
      fieldOf(name),
    ]),
  )
  expect(text).toContain('value="fri" checked')
  expect(text).toContain('<option value="Asia/Tokyo" selected>')
  const used = [...form.matchAll(/name="use" value="(\w+)" checked/g)].map(([, line]) => line)
  expect(used).toEqual(['language', 'query', 'dates', 'week'])
  await send(ann, { action: 'save', at: '0', ...shown, days: 'fri', zone: 'Asia/Tokyo' })
  expect(stored(app)).toEqual(before)
})

const QUERIES: readonly [string, Record<string, string | true>][] = [
  ['v=2&w=3', { v: '2', w: '3' }],
  ['?v=2&preview', { v: '2', preview: true }],
  ['?v=a,b', { v: 'a,b' }],
  ['v=a%20b', { v: 'a b' }],
  ['v=100%25, w=a%26b', { v: '100%', w: 'a&b' }],
  ['v=a+b&w=', { v: 'a b', w: '' }],
  ['v=2 , ?w=3', { v: '2', w: '3' }],
  ['q=x=y', { q: 'x=y' }],
]

test.each(QUERIES)(
  'the query %s is read as that of an address, and shown as such',
  async (text, query) => {
    await using app = await testApp()
    const ann = await annWithLink(app)
    expect((await add(ann, { url: 'https://example.com/v', query: text })).status).toBe(303)
    expect(stored(app)).toEqual([{ when: { query }, url: 'https://example.com/v' }])
    const { text: page } = await ann.get(`${PAGE}?edit=0`)
    const shown = /name="query"[^>]*? value="([^"]*)"/.exec(page.split('id="edit"')[1] ?? '')?.[1]
    const again = { action: 'save', at: '0', url: 'https://example.com/v', query: shown ?? '' }
    expect((await send(ann, again)).status).toBe(303)
    expect(stored(app)).toEqual([{ when: { query }, url: 'https://example.com/v' }])
  },
)

test('a form of an older list changes nothing, and keeps what was typed', async () => {
  await using app = await testApp()
  const ann = await annWithLink(app)
  await add(ann, { url: 'https://example.com/one', os: 'ios' })
  const version = /name="version" value="(\w+)"/.exec((await ann.get(PAGE)).text)?.[1] ?? ''
  await add(ann, { url: 'https://example.com/two', os: 'android' })
  for (const fields of [
    { action: 'remove', at: '0' },
    { at: '1', to: '0' },
    { action: 'save', at: '', url: 'https://example.com/three', os: 'linux' },
  ]) {
    const seen = await ann.post(PAGE, { ...fields, version })
    expect([fields, seen.status]).toEqual([fields, 422])
    if ('url' in fields) expect(seen.text).toContain(`value="${fields.url}"`)
  }
  expect(urls(app)).toEqual(['https://example.com/one', 'https://example.com/two'])
  for (const fields of [
    { at: '0', to: '-1' },
    { at: '1', to: '2' },
    { at: '1', to: '' },
    { action: 'remove', at: '7' },
    { action: 'remove', at: '-1' },
    { action: 'remove', at: '0.5' },
    { action: 'toString', at: '0' },
  ]) {
    expect((await send(ann, fields)).status).toBe(422)
  }
  expect(urls(app)).toEqual(['https://example.com/one', 'https://example.com/two'])
})

const HOURS: readonly [string, string, string][] = [
  ['9', '', '09:00-24:00'],
  ['9-17', '', '09:00-17:00'],
  ['9:30', '1730', '09:30-17:30'],
  ['', '9', '00:00-09:00'],
  ['18:00 – 02:00', '', '18:00-02:00'],
]

test.each(HOURS)('the hours %s and %s are %s', async (hours, hours_until, stored_hours) => {
  await using app = await testApp()
  const ann = await annWithLink(app)
  const zone = 'Europe/Berlin'
  const fields = { url: 'https://example.com/h', hours, hours_until, zone }
  expect((await add(ann, fields)).status).toBe(303)
  const when = { hours: stored_hours, zone }
  expect(stored(app)).toEqual([{ when, url: 'https://example.com/h' }])
  const { text } = await ann.get(`${PAGE}?edit=0`)
  const [, form = ''] = text.split('id="edit"')
  const shown = (name: string) => new RegExp(`name="${name}"[^>]* value="([^"]*)"`).exec(form)?.[1]
  const again = { hours: shown('hours') ?? '', hours_until: shown('hours_until') ?? '' }
  await send(ann, { action: 'save', at: '0', ...fields, ...again })
  expect(stored(app)).toEqual([{ when, url: 'https://example.com/h' }])
})

test('only the conditions that are chosen in the form count', async () => {
  await using app = await testApp()
  const ann = await annWithLink(app)
  const fields = { url: 'https://example.com/a', os: 'ios', language: 'klingon', query: 'v=2' }
  expect((await add(ann, { ...fields, use: ['', 'os'] })).status).toBe(303)
  expect(stored(app)).toEqual([{ when: { os: ['ios'] }, url: 'https://example.com/a' }])
  const none = await add(ann, { ...fields, use: '' })
  expect([none.status, none.text.includes('value="ios" checked')]).toEqual([422, true])
  const wrong = await add(ann, { ...fields, use: ['', 'os', 'language'] })
  expect(wrong.invalid).toEqual(['language'])
  expect(wrong.text).toMatch(/value="language" checked/)
  expect(wrong.text).not.toMatch(/value="query" checked/)
})

/** What the try-out says of each destination, and of everybody else. */
const tried = async (visitor: Visitor, query: Record<string, string>): Promise<string[]> => {
  const { text } = await visitor.get(`${PAGE}?${new URLSearchParams({ try: '1', ...query })}`)
  const [, list = ''] = /<ol id="rules"(.*?)<\/ol>/s.exec(text) ?? []
  return list
    .split(/<li\b/)
    .slice(1)
    .map((row) => {
      const [, said = ''] = /<span class="tried[^>]*>(.*?)<\/span>/s.exec(row) ?? []
      return said.replaceAll(/<[^>]*>/g, '').trim()
    })
}

test('the try-out marks the row of a visitor and says why those before are not theirs', async () => {
  await using app = await testApp({ env: { COUNTRY_HEADER: 'cf-ipcountry' } })
  const ann = await annWithLink(app)
  await add(ann, { url: 'https://example.com/ios', os: 'ios' })
  await add(ann, { url: 'https://example.com/de', language: 'de', country: 'DE' })
  const evening = { days: 'sat', hours: '18:00-02:00', zone: 'Europe/Berlin' }
  await add(ann, { url: 'https://example.com/evening', ...evening })
  await add(ann, { url: 'https://example.com/v', query: 'v=2' })
  const YES = 'This visitor'
  expect(await tried(ann, { os: 'ios', language: 'de', country: 'de' })).toEqual([
    YES,
    '',
    '',
    '',
    '',
  ])
  expect(await tried(ann, { os: 'macos', language: 'de-CH,en;q=0.5', country: 'de' })).toEqual([
    'no: system',
    YES,
    '',
    '',
    '',
  ])
  // Saturday 19:00 in Berlin, which is UTC+1 then.
  expect(await tried(ann, { language: 'de', country: 'FR', time: '2026-03-07T18:00' })).toEqual([
    'no: system',
    'no: country',
    YES,
    '',
    '',
  ])
  const others = ['no: system', 'no: language', 'no: day and hour']
  const sunday = { time: '2026-03-08T12:00' }
  expect(await tried(ann, { ...sunday, query: 'v=2&w=1' })).toEqual([...others, YES, ''])
  expect(await tried(ann, { ...sunday, query: '' })).toEqual([...others, 'no: query', YES])
  const before = stored(app)
  // Anything may stand in the address.
  const odd = { os: 'constructor', language: 'x'.repeat(5000), time: 'never', query: '%' }
  expect((await tried(ann, odd)).length).toBe(5)
  expect(stored(app)).toEqual(before)
})

test('a row that redirects skip because its host is blocked is skipped in the try-out, too', async () => {
  await using app = await testApp()
  const ann = await annWithLink(app)
  await add(ann, { url: 'https://bad.example/ios', os: 'ios' })
  const author = operatorOf(app.administration)
  const blocked = { author, host: 'bad.example', reason: 'test' }
  await app.administration.data.blockedHosts.block(blocked)
  const cells = await tried(ann, { os: 'ios' })
  expect(cells).toEqual(['no: host is on the abuse blocklist', 'This visitor'])
})

test('a viewer tries the destinations and is offered no change', async () => {
  await using app = await testApp()
  const ann = await annWithLink(app)
  const viewer = new Visitor(app)
  const path = await inviteTo(ann, 'viewer@example.com', 'viewer')
  await viewer.post(path, { password: PASSWORD })
  expect((await viewer.get('/app/links/SPRING26')).text).not.toContain(PAGE)
  await add(ann, { url: 'https://example.com/ios', os: 'ios' })
  expect((await viewer.get('/app/links/SPRING26')).text).toContain(PAGE)
  expect(await tried(viewer, { os: 'ios' })).toEqual(['This visitor', ''])
  const { text } = await viewer.get(PAGE)
  expect(text).not.toContain(`method="post" action="${PAGE}"`)
  expect(text).not.toContain('edit=')
})

test('with DESTINATION_RULES=owners, members see no form to add, and may remove', async () => {
  await using app = await testApp({ env: { DESTINATION_RULES: 'owners' } })
  const ann = await annWithLink(app)
  expect((await ann.get('/app/links/SPRING26')).text).not.toContain(PAGE)
  app.administer(({ db }) =>
    db.run(
      `UPDATE links SET destinations = '[{"when":{"os":["ios"]},"url":"https://example.com/i"}]'`,
    ),
  )
  expect((await ann.get(PAGE)).text).not.toContain('edit=new')
  expect((await add(ann, { url: 'https://example.com/mac', os: 'macos' })).status).toBe(403)
  expect(urls(app)).toEqual(['https://example.com/i'])
  expect((await send(ann, { action: 'remove', at: '0' })).status).toBe(303)
  expect(stored(app)).toEqual([])
})
