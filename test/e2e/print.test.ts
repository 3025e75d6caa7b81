import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { unzipSync } from 'fflate'
import { PNG } from 'pngjs'
import { testApp } from '../support/app.ts'
import { browserTests, openAs } from '../support/browser.ts'
import { decodeQr, drawPages, findCodes, run, scratch } from '../support/decode-qr.ts'
import { pngLogo, uploadLogo } from '../support/logos.ts'
import { makeMember } from '../support/members.ts'
import { testWith } from '../support/tools.ts'

/** Sheets of labels, and ZIP files of codes. */

const test = testWith('pdftoppm', 'mutool', 'rsvg-convert', 'cairosvg')
const { browser, test: browserTest } = browserTests()

const LONG_TITLES = [
  'Lorem ipsum dolor sit amet '.repeat(8).slice(0, 200),
  'x'.repeat(60),
  'ラーメンと餃子の'.repeat(20),
  'قائمة الطعام اليومية '.repeat(9),
  '🍕'.repeat(40),
]

const TITLES = [
  'Lunch menu',
  'Speisekarte für Gäste im Garten und auf der großen Terrasse am See',
  'ラーメン',
  '<b>"Меню" & дня</b>',
  'Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen',
]

/** An account with `count` links that have titles. */
async function withLinks(count: number, titles = TITLES) {
  const app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  const member = await makeMember(app, 'enterprise@example.com')
  const codes = Array.from({ length: count }, (_, n) => `MENU${String(n).padStart(5, '0')}`)
  const lines = codes.map((code, n) =>
    JSON.stringify({
      code,
      url: `https://example.com/${n}`,
      title: titles[n % titles.length],
      tags: n % 2 === 0 ? ['even'] : [],
    }),
  )
  const headers = { 'content-type': 'application/x-ndjson' }
  const sent = { key: 'enterprise', raw: lines.join('\n'), headers } as const
  if (count > 0) expect((await app.call('POST', '/api/import', sent)).status).toBe(200)
  const cookie = [...member.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const load = async (path: string) => {
    const response = await fetch(new URL(`/app/print${path}`, app.url), { headers: { cookie } })
    return { status: response.status, headers: response.headers, bytes: await response.bytes() }
  }
  return { app, member, codes, load, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

const textsOf = (codes: readonly string[], ref = '') =>
  codes.map((code) => `http://hop.test/${code}${ref}`).sort()

/** The most that a sheet has: PRINTED_LABELS=500 npm test -- test/e2e/print.test */
const COUNT = Number(process.env.PRINTED_LABELS ?? 30)

const SHEETS = [
  'a4',
  'letter',
  'l7160',
  '3475',
  '5160',
  '5163',
  'a4&columns=4&rows=8&gap=0',
  'a4&margin=0&gap=0',
]

test.each(SHEETS)(
  `${COUNT} labels on %s: each code is whole and is read at 150 dpi`,
  async (sheet) => {
    await using it = await withLinks(COUNT)
    using files = scratch()
    const options = 'sent=1&title=1&address=1&marks=1&caption=Scan+für+mehr'
    const path = `/labels.pdf?${options}&labels=${sheet}`
    const { status, bytes } = await it.load(path)
    expect(status).toBe(200)
    const pages = await drawPages(bytes, files.dir, 150)
    const found = []
    for (const page of pages) found.push(...(await findCodes(page)))
    expect(found.map(({ text }) => text).sort()).toEqual(textsOf(it.codes))
  },
)

const SMALL_LABELS = 'a4&columns=8&rows=10&gap=2'
/** Long titles, in four minutes: PRINTED_LABELS=500 npm test -- test/e2e/print.test */
const LABELS = Number(process.env.PRINTED_LABELS ?? 120)
const LARGE =
  LABELS < 500 ? [SMALL_LABELS] : ['a4', 'letter', 'l7160', '3475', '5160', SMALL_LABELS]

browserTest.each(LARGE)(
  `${LABELS} labels on %s are read from the printed page and the PDF`,
  async (sheet) => {
    await using it = await withLinks(LABELS, LONG_TITLES)
    using files = scratch()
    const query = `sent=1&title=1&address=1&marks=1&caption=Scan+für+mehr&labels=${sheet}`
    const { bytes } = await it.load(`/labels.pdf?${query}`)
    await using opened = await openAs(browser(), { app: it.app, visitor: it.member })
    const { page, problems } = opened
    await page.goto(`${it.app.url}/app/print?${query}`, { waitUntil: 'networkidle' })
    const printed = await page.pdf({ preferCSSPageSize: true })
    const counts = []
    for (const pdf of [bytes, printed]) {
      const pages = await drawPages(pdf, files.dir, 150)
      const found = []
      for (const file of pages) found.push(...(await findCodes(file)))
      expect(found.map(({ text }) => text).sort()).toEqual(textsOf(it.codes))
      counts.push(pages.length)
      for (const file of pages) rmSync(file)
    }
    expect(counts[1]).toBe(counts[0])
    expect(problems).toEqual([])
  },
)

test('the page to print has the same sheets as the PDF, and says what the PDF lacks', async () => {
  await using it = await withLinks(25)
  const { text } = await it.member.get('/app/print?labels=l7160&tag=even')
  expect(text.match(/<img class="sheet"/g)).toHaveLength(1)
  expect(text).toContain('Labels for 13 links')
  expect(text).toContain('in letters that our typeface')
  const [, src = ''] = /<img class="sheet" src="([^"]+)"/.exec(text) ?? []
  const page = await it.load(src.replaceAll('&amp;', '&').replace('/app/print', ''))
  const svg = new TextDecoder().decode(page.bytes)
  expect(svg).toStartWith('<svg xmlns="http://www.w3.org/2000/svg"')
  expect(svg).toContain('width="210mm" height="297mm"')
  // Letters that we cannot draw are left to the browser; markup in titles is text.
  expect(svg).toContain('>ラーメン</text>')
  expect(svg).not.toContain('<b>')
  const chosen = await it.member.get(`/app/print?codes=${it.codes.slice(0, 3).join(',')}`)
  expect(chosen.text).toContain('Labels for 3 links')
  expect((await it.load('/page.svg?sheet=9')).status).toBe(404)
  expect((await it.member.get('/app/print?codes=OTHER999')).status).toBe(404)
})

const refusals = [
  { query: 'columns=99', message: 'Columns: ' },
  { query: 'columns=10&rows=20&gap=9', message: 'smaller than 15 mm' },
  { query: 'margin=x', message: 'Margin (mm): ' },
  { query: 'caption=メニュー', message: 'without &quot;メ&quot;' },
  { query: 'gap=2.555', message: 'at most two decimals' },
  { query: 'gap=2,55', message: 'at most two decimals' },
  { query: 'rows=2.5', message: 'without decimals' },
  { query: 'columns=10&rows=18&margin=0&gap=0', message: 'no room for a code' },
]

/** Values that no field of the form sends. */
const unknown = [
  'labels=nope',
  'labels=L7160',
  'labels=constructor',
  'labels=',
  'preset=99',
  'title=yes',
  'marks=2',
  'file=gif',
]

test('bad options are named at their field, and nothing is printed', async () => {
  await using it = await withLinks(1)
  for (const { query, message } of refusals) {
    const { text } = await it.member.get(`/app/print?sent=1&${query}`)
    expect(text).toContain(message)
    expect(text).not.toContain('<img class="sheet"')
    // What was typed stays in its field.
    for (const value of new URLSearchParams(query).values()) {
      expect(text).toContain(`value="${value}"`)
    }
    for (const file of ['labels.pdf', 'page.svg', 'codes.zip']) {
      if (file === 'codes.zip' && !query.startsWith('caption')) continue
      expect([query, (await it.load(`/${file}?${query}`)).status]).toEqual([query, 400])
    }
  }
})

test('an unknown value of an option is refused, and two decimals are known', async () => {
  await using it = await withLinks(1)
  for (const query of unknown) {
    for (const file of ['labels.pdf', 'page.svg', 'codes.zip']) {
      if (query.startsWith('file') !== (file === 'codes.zip')) continue
      expect([query, file, (await it.load(`/${file}?sent=1&${query}`)).status]).toEqual([
        query,
        file,
        400,
      ])
    }
    if (query.startsWith('file')) continue
    const { text } = await it.member.get(`/app/print?sent=1&${query}`)
    expect([query, text.includes('These options cannot be printed')]).toEqual([query, true])
  }
  for (const query of ['gap=2.55', 'margin=.5', 'margin=0&gap=0', 'labels=l7160']) {
    expect([query, (await it.load(`/page.svg?${query}`)).status]).toEqual([query, 200])
  }
})

test('texts that a label lacks are counted, and an alias is printed in its own letters', async () => {
  const titles = ['Spring Sale 🌸 up to 40 % 9', 'W'.repeat(200), 'Lunch']
  await using it = await withLinks(3, titles)
  const json = { aliases: ['メニュー-51'] }
  const { status } = await it.app.call('PATCH', '/api/links/MENU00002', { key: 'enterprise', json })
  expect(status).toBe(200)
  const { text } = await it.member.get('/app/print?labels=3475')
  expect(text).toContain('1 text left out')
  expect(text).toContain('2 texts in letters that our typeface')
  const svg = new TextDecoder().decode((await it.load('/page.svg?labels=3475')).bytes)
  const lines = [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, line = '']) => line)
  for (const whole of [titles[0], 'hop.test/メニュー-51']) {
    expect(lines.join(' ')).toContain(whole ?? '?')
  }
})

const nothing = ['', 'q=nothing-matches', 'tag=nothing', 'q=nothing-matches&skip=3']

test.each(nothing)('a file of no links is not found, with words: %s', async (query) => {
  await using it = await withLinks(query === '' ? 0 : 1)
  for (const file of ['labels.pdf', 'page.svg', 'codes.zip']) {
    const { status, bytes } = await it.load(`/${file}?sent=1&${query}`)
    expect([file, status]).toEqual([file, 404])
    expect(new TextDecoder().decode(bytes)).toContain('There is no such page.')
  }
})

test('an SVG sheet has the logo once, and every program draws it at each code', async () => {
  await using it = await withLinks(18)
  using files = scratch()
  expect((await uploadLogo(it.app, it.member, pngLogo(300, 200))).status).toBe(303)
  const saved = { name: 'Logo', logo: '1' }
  await it.member.post('/app/qr/presets', saved, { from: '/app/qr' })
  const { text } = await it.member.get('/app/print')
  const preset = /<option value="(\d+)"[^>]*>Logo/.exec(text)?.[1]
  const { bytes } = await it.load(`/page.svg?sent=1&marks=1&preset=${preset}`)
  const svg = new TextDecoder().decode(bytes)
  expect(svg.match(/data:image/g)).toHaveLength(1)
  expect(svg.match(/<use /g)).toHaveLength(18)
  const file = files.path('page.svg')
  await Bun.write(file, bytes)
  run('rsvg-convert', '-d', '150', '-p', '150', file, '-o', files.path('rsvg.png'))
  run('cairosvg', file, '-d', '150', '-f', 'png', '-o', files.path('cairo.png'))
  run('mutool', 'draw', '-q', '-r', '150', '-o', files.path('mupdf.png'), file)
  for (const drawn of ['rsvg.png', 'cairo.png', 'mupdf.png'].map(files.path)) {
    const found = await findCodes(drawn)
    expect(found.map((code) => code.text).sort()).toEqual(textsOf(it.codes))
    const { width, data } = PNG.sync.read(Buffer.from(await Bun.file(drawn).bytes()))
    for (const { left, right, top, bottom } of found) {
      const [x, y] = [Math.round((left + right) / 2), Math.round((top + bottom) / 2)]
      expect(data.subarray(4 * (y * width + x)).toHex()).toStartWith('008844')
    }
  }
})

test('a ZIP has an image for each code, named by address and title, and a list', async () => {
  await using it = await withLinks(7)
  for (const format of ['png', 'svg', 'pdf']) {
    const { status, headers, bytes } = await it.load(`/codes.zip?file=${format}`)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/zip'])
    const files = unzipSync(bytes)
    const names = Object.keys(files)
    expect(names).toHaveLength(8)
    expect(names).toContain(`MENU00000-Lunch-menu.${format}`)
    expect(names).toContain(`MENU00002-ラーメン.${format}`)
    const list = new TextDecoder().decode(files['codes.csv']).trim().split('\r\n')
    expect(list).toHaveLength(8)
    expect(list[0]).toContain('file,short_url,url,title')
    if (format !== 'png') continue
    for (const [name, image] of Object.entries(files)) {
      if (name === 'codes.csv') continue
      expect((await decodeQr(image)).text).toBe(`http://hop.test/${name.slice(0, 9)}`)
    }
  }
})

test('a PDF is sound for two readers', async () => {
  await using it = await withLinks(3)
  using files = scratch()
  const { bytes } = await it.load('/labels.pdf')
  await Bun.write(files.path('labels.pdf'), bytes)
  run('mutool', 'draw', '-q', '-r', '150', '-o', files.path('mupdf.png'), files.path('labels.pdf'))
  const [drawn = ''] = await drawPages(bytes, files.dir, 150)
  for (const page of [drawn, files.path('mupdf.png')]) {
    const texts = (await findCodes(page)).map(({ text }) => text)
    expect(texts.sort()).toEqual(textsOf(it.codes))
  }
})
