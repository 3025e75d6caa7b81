import { expect, test } from 'bun:test'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { problemsOf } from '../support/database.ts'
import { makeMember } from '../support/members.ts'

/** Campaign parameters of new and stored links, and their templates. */

const PATH = '/app/campaigns'
const URL = 'https://shop.example/?q=1#top'
const NONE = { utm_source: '', utm_medium: '', utm_campaign: '', utm_term: '', utm_content: '' }

const urls = async (app: TestApp): Promise<string[]> => {
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  return (body.items as { url: string }[]).map(({ url }) => url).reverse()
}

const textOf = (html: string) => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('what is filled in is written into the URL of a new link, and nothing else changes', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const sent = { url: URL, ...NONE, utm_source: 'Flyer & co', utm_campaign: 'spring' }
  expect((await free.post('/app/links', sent)).status).toBe(200)
  await free.post('/app/links', { url: 'shop.example/?utm_source=a', ...NONE, campaign_shown: '' })
  await free.post('/app/links', { url: 'https://shop.example/?', ...NONE, campaign_shown: '' })
  expect(await urls(app)).toEqual([
    'https://shop.example/?q=1&utm_source=Flyer%20%26%20co&utm_campaign=spring#top',
    'https://shop.example/?utm_source=a',
    'https://shop.example/?',
  ])
  expect(problemsOf(app)).toEqual([])
})

test('a refused form keeps what was typed, and the field that was too long is marked', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const long = 'x'.repeat(201)
  const sent = { url: URL, ...NONE, campaign_shown: '', utm_term: 'shoes', utm_source: long }
  const { status, text } = await free.post('/app/links', sent)
  expect(status).toBe(422)
  expect(text).toContain('id="field-utm_source-error"')
  expect(text).toMatch(/name="utm_term"[^>]* value="shoes"/)
  expect(text).toContain('shop.example/?q=1#top')
  expect(await urls(app)).toEqual([])
})

test('the settings of a link show its parameters: changed ones are written, cleared ones removed', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const url = 'https://shop.example/?utm_source=flyer&utm_medium=print&q=1'
  const { code } = await app.shorten(url)
  const page = await free.get(`/app/links/${code}/settings`)
  expect(page.text).toMatch(/name="utm_source"[^>]* value="flyer"/)
  const shown = '?utm_source=flyer&utm_medium=print'
  const same = { ...NONE, utm_source: 'flyer', utm_medium: 'print', campaign_shown: shown }
  const save = (sent: Record<string, string>) =>
    free.post(`/app/links/${code}/settings`, { url, ...same, ...sent, csrf: page.csrf })
  await save({ utm_source: 'poster', utm_medium: '' })
  expect(await urls(app)).toEqual(['https://shop.example/?utm_source=poster&q=1'])
  // Who changes the text of the URL does not lose that by the fields.
  await save({ url: 'https://shop.example/?utm_source=typed' })
  expect(await urls(app)).toEqual(['https://shop.example/?utm_source=typed'])
})

test('the fields are read from a pasted URL, and what was typed before stays', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const sent = {
    url: 'https://shop.example/?utm_source=news&utm_medium=email',
    ...NONE,
    campaign_shown: '',
    utm_medium: 'print',
  }
  const { text } = await free.post(`${PATH}/fields`, sent, { from: PATH })
  expect(text).toMatch(/name="utm_source"[^>]* value="news"/)
  expect(text).toMatch(/name="utm_medium"[^>]* value="print"/)
  expect(textOf(text)).toContain(
    'Becomes https://shop.example/?utm_source=news&amp;utm_medium=print',
  )
})

test('a template fills the fields of one link, of the settings and of many links', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const saved = await free.post(PATH, { name: 'Print', ...NONE, utm_medium: 'print' })
  expect(saved.status).toBe(303)
  const page = await free.get('/app/links')
  const [, id = ''] = /<option value="(\d+)">Print</.exec(page.text) ?? []
  const chosen = { ...NONE, campaign_shown: '', campaign_template: id }
  await free.post('/app/links', { url: URL, ...chosen, utm_source: 'wall' })
  await free.post('/app/links/bulk', {
    urls: 'a.example\nb.example/?utm_medium=x',
    tags: '',
    ...chosen,
  })
  expect(await urls(app)).toEqual([
    'https://shop.example/?q=1&utm_medium=print&utm_source=wall#top',
    'https://a.example?utm_medium=print',
    'https://b.example/?utm_medium=print',
  ])
  const fields = await free.post(`${PATH}/fields`, { url: URL, ...chosen }, { from: PATH })
  expect(fields.text).toMatch(/name="utm_medium"[^>]* value="print"/)
  await free.post(`${PATH}/delete`, { template: id, csrf: page.csrf })
  expect((await free.get(PATH)).text).not.toContain('>Print<')
})

test.each([
  ['name', { ...NONE, utm_source: 'a' }],
  ['name', { name: 'x'.repeat(41), ...NONE, utm_source: 'a' }],
  ['utm_source', { name: 'Empty', ...NONE }],
  ['utm_term', { name: 'Long', ...NONE, utm_term: 'x'.repeat(201) }],
])('a template is refused at its field %s: %j', async (field, sent) => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const { status, text } = await free.post(PATH, sent)
  expect(status).toBe(422)
  expect(text).toContain(`id="field-${field}-error"`)
})

test('an account has at most 50 templates, and another account sees and deletes none of them', async () => {
  const env = { DASHBOARD_REQUESTS_PER_MINUTE: '0' }
  await using app = await testApp({ env })
  const free = await makeMember(app, 'free@example.com')
  const { csrf: token } = await free.get(PATH)
  const save = (name: string) => free.post(PATH, { name, ...NONE, utm_source: name, csrf: token })
  for (let n = 0; n < 50; n++) expect((await save(`Spring offer ${n}`)).status).toBe(303)
  expect((await save('one more')).status).toBe(422)
  expect((await save('Spring offer 7')).status).toBe(303)
  const pro = await makeMember(app, 'pro@example.com')
  const { campaignTemplates, accounts } = app.administration.data
  const accountId = accounts.findByEmail('free@example.com')?.id ?? 0
  const [id] = campaignTemplates.list(accountId)
  const { text, csrf } = await pro.get(PATH)
  expect(text).not.toContain('Spring offer')
  expect((await pro.post(`${PATH}/delete`, { template: String(id?.id), csrf })).status).toBe(303)
  expect(campaignTemplates.list(accountId)).toHaveLength(50)
})

test('Analytics adds up hits and scans by campaign, then source and medium, and has them as a file', async () => {
  const env = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '0' }
  await using app = await testApp({ visitFlushMs: 20, env })
  const free = await makeMember(app, 'free@example.com')
  const report = '/app/analytics/campaigns'
  expect((await free.get(report)).text).toContain('No campaigns yet')
  const url = (campaign: string, source: string) =>
    `https://shop.example/?utm_campaign=${campaign}&utm_source=${source}&utm_medium=print`
  await app.claim('SPRING26', url('spring%20sale', '%3Dflyer'))
  await app.claim('SUMMER26', url('spring%20sale', 'poster'))
  await app.claim('AUTUMN26', url('autumn', 'mail'))
  await app.claim('WINTER26', 'https://shop.example/')
  const visit = (path: string) =>
    app.call('GET', path, { headers: { 'user-agent': 'Mozilla/5.0 Firefox/130.0' } })
  await visit('/SPRING26')
  for (const path of ['/SUMMER26?ref=qr', '/SUMMER26', '/AUTUMN26', '/WINTER26']) await visit(path)
  await eventually('the visits are stored', async () =>
    (await free.get('/app/analytics')).text.includes('all 5 hits.'),
  )
  const { text } = await free.get(`${report}?range=7d`)
  const rows = [...text.matchAll(/<tr><td[\s\S]*?<\/tr>/g)].map(([row]) => textOf(row).trim())
  expect(rows).toEqual([
    'spring sale 2 links 3 1 new',
    'poster / print 2 1 new',
    '=flyer / print 1 0 new',
    'autumn 1 link 1 0 new',
    'mail / print 1 0 new',
  ])
  // Each leads to the analytics of its links, for the same range.
  expect(text).toContain('href="/app/analytics?links=SUMMER26,SPRING26&amp;range=7d"')
  const file = await free.get(`${report}.csv?range=7d`)
  expect(file.text.split('\r\n')).toEqual([
    'campaign,source,medium,links,hits,scans,hits_before',
    'spring sale,poster,print,1,2,1,0',
    "spring sale,'=flyer,print,1,1,0,0",
    'autumn,mail,print,1,1,0,0',
    '',
  ])
  // Another account has other links.
  const pro = await makeMember(app, 'pro@example.com')
  expect((await pro.get(report)).text).toContain('No campaigns yet')
  const later = await free.get(`${report}?from=2026-02-01&to=2026-02-02`)
  expect(later.text).toContain('No hits from 1 Feb 2026 to 2 Feb 2026.')
  const wrong = 'from=2026-02-02&to=2026-02-01'
  expect((await free.get(`${report}?${wrong}`)).text).toContain('id="range-error"')
  expect((await free.get(`${report}.csv?${wrong}`)).status).toBe(400)
})

const { test: browserTest, browser } = browserTests()

browserTest(
  'the fields follow the URL, and the URL the fields and the template, while one types',
  async () => {
    await using app = await testApp()
    const free = await makeMember(app, 'free@example.com')
    await free.post(PATH, { name: 'Print', ...NONE, utm_medium: 'print' })
    await using opened = await openAs(browser(), { app, visitor: free })
    const { page } = opened
    await page.goto(`${app.url}/app/links`)
    await page.locator('#campaign summary').click()
    const url = page.getByLabel('Shorten a URL')
    const field = (name: string) => page.locator(`#field-utm_${name}`)
    // Typed before there is a URL.
    await page.getByLabel('Content (utm_content)').fill('blue & big')
    await url.fill('https://shop.example/?utm_source=news&q=1#top')
    expect(await field('source').inputValue()).toBe('news')
    await url.press('Tab')
    const start = 'https://shop.example/?utm_source=news&q=1&utm_content=blue%20%26%20big'
    expect(await url.inputValue()).toBe(`${start}#top`)
    await page.getByLabel('Template').selectOption('Print')
    await eventually('the template is in the URL', async () =>
      (await url.inputValue()).includes('&utm_medium=print#top'),
    )
    expect(await field('medium').inputValue()).toBe('print')
    await field('source').fill('')
    await field('content').fill('')
    await field('campaign').fill('spring sale')
    const result = 'https://shop.example/?q=1&utm_medium=print&utm_campaign=spring%20sale#top'
    expect(await url.inputValue()).toBe(result)
    expect(await violations(page)).toEqual([])
    await page.setViewportSize({ width: 320, height: 800 })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('button', { name: 'Shorten' }).click()
    await page.locator('.toast').waitFor()
    expect(await urls(app)).toEqual([result])
    // Enter sends the form; the fields stay closed and empty for the next link.
    await page.getByLabel('Shorten a URL').fill('https://shop.example/?utm_source=next')
    await page.getByLabel('Shorten a URL').press('Enter')
    await page.locator('.list, table').getByText('utm_source=next').first().waitFor()
    expect(await page.locator('#campaign[open]').count()).toBe(0)
    expect(await page.locator('#field-utm_source').inputValue()).toBe('')
    await url.fill('https://shop.example/?utm_source=typed')
    expect(await field('source').inputValue()).toBe('typed')
    expect(await page.locator('#campaign[open]').count()).toBe(0)
    for (const path of [PATH, '/app/analytics/campaigns']) {
      await page.goto(app.url + path)
      expect(await violations(page)).toEqual([])
    }
    expect(opened.problems).toEqual([])
  },
)
