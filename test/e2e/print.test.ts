import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { unzipSync } from 'fflate'
import { PNG } from 'pngjs'
import { eventually, testApp } from '../support/app.ts'
import { browserTests, openAs } from '../support/browser.ts'
import { decodeQr, drawPages, findCodes, run, scratch, zbarReads } from '../support/decode-qr.ts'
import { pngLogo, uploadLogo } from '../support/logos.ts'
import { makeMember } from '../support/members.ts'
import { NOTO_FONTS, testWith } from '../support/tools.ts'

/** Sheets of labels, and ZIP files of codes. */

const test = testWith('pdftoppm', 'mutool', 'rsvg-convert', 'cairosvg')
const testNoto = testWith(
  'Noto fonts',
  'pdftoppm',
  'mutool',
  'rsvg-convert',
  'zbarimg',
  'imagemagick',
)
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

/** Only the built-in typeface: others depend on the machine. */
const NO_FONTS: Record<string, string> = { CAPTION_FONTS: import.meta.dir }
const NOTO = { CAPTION_FONTS: NOTO_FONTS.join() }

/** An account with `count` links that have titles. */
async function withLinks(count: number, titles = TITLES, env = NO_FONTS) {
  const app = await testApp({ env: { IMPORT_ALIASES: 'all', ...env }, visitFlushMs: 20 })
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

const textsOf = (codes: readonly string[], ref = '?ref=qr') =>
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
  expect(text).toContain('13 labels on 1 sheet')
  expect(text).toContain('with characters that no font of this service has (ラ ー メ ン)')
  const [, src = ''] = /<img class="sheet" src="([^"]+)"/.exec(text) ?? []
  const page = await it.load(src.replaceAll('&amp;', '&').replace('/app/print', ''))
  const svg = new TextDecoder().decode(page.bytes)
  expect(svg).toStartWith('<svg xmlns="http://www.w3.org/2000/svg"')
  expect(svg).toContain('width="210mm" height="297mm"')
  // Letters that we cannot draw are left to the browser; markup in titles is text.
  expect(svg).toContain('>ラーメン</text>')
  expect(svg).not.toContain('<b>')
  const chosen = await it.member.get(`/app/print?codes=${it.codes.slice(0, 3).join(',')}`)
  expect(chosen.text).toContain('3 labels on 1 sheet')
  // A link that was deleted meanwhile is left out.
  const { text: others } = await it.member.get(`/app/print?codes=${it.codes[0]},OTHER999`)
  expect(others).toContain('1 label on 1 sheet')
  expect((await it.load('/page.svg?sheet=9')).status).toBe(404)
  expect((await it.member.get('/app/print?codes=OTHER999')).status).toBe(404)
})

const refusals = [
  { query: 'columns=99', message: 'Columns: ' },
  { query: 'columns=10&rows=20&gap=9', message: 'smaller than 15 mm' },
  { query: 'margin=x', message: 'Margin (mm): ' },
  { query: 'copies=0', message: 'Copies of each: ' },
  { query: 'right=0.25', message: 'at most one decimal' },
  { query: 'down=-10.1', message: 'between -10 and 10' },
  { query: 'count=2&word=Table', message: 'Count scans as: ' },
  { query: 'count=2&word=a_b', message: 'Count scans as: ' },
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
    for (const file of ['labels.pdf', 'page.svg']) {
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
  expect(text).toContain('2 texts with characters that no font of this service has')
  const svg = new TextDecoder().decode((await it.load('/page.svg?labels=3475')).bytes)
  const lines = [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, line = '']) => line)
  for (const whole of [titles[0], 'hop.test/メニュー-51']) {
    expect(lines.join(' ')).toContain(whole ?? '?')
  }
})

test('labels say how to see where an address leads if that is chosen, each in a line of its own', async () => {
  await using it = await withLinks(4)
  const linesIn = async (query: string) => {
    const { bytes } = await it.load(`/page.svg?${query}`)
    return new TextDecoder().decode(bytes).match(/<path /g)?.length ?? 0
  }
  const plain = await linesIn('sent=1&title=1&address=1&marks=1')
  expect(await linesIn('')).toBe(plain)
  expect(await linesIn('sent=1&title=1&address=1&marks=1&hint=1')).toBe(plain + 4)
  const withoutAddress = await linesIn('sent=1&title=1&marks=1')
  expect(await linesIn('sent=1&title=1&marks=1&hint=1')).toBe(withoutAddress)
  expect((await it.member.get('/app/print')).text).toContain('Add + to see where it leads')
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
    // The preset has no `ref`.
    expect(found.map((code) => code.text).sort()).toEqual(textsOf(it.codes, ''))
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
      expect((await decodeQr(image)).text).toBe(`http://hop.test/${name.slice(0, 9)}?ref=qr`)
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

/** 24 titles: Japanese, Arabic, Hindi, and with an emoji. */
const WORLD = [
  'ラーメンと餃子',
  'قائمة الطعام اليومية',
  'आज का मेनू और विशेष व्यंजन',
  'Menu of the day 🍽',
  'お品書き「夏」2026',
  'قائمة 24 (الغداء)',
  'हिन्दी क्षत्रिय 24',
  '🌶 Chili con carne',
]

testNoto(
  '24 labels in Japanese, Arabic, Hindi and with emoji are read, in every file',
  async () => {
    await using it = await withLinks(24, WORLD, NOTO)
    using files = scratch()
    const query = 'sent=1&title=1&address=1&labels=3475&caption=お品書き+قائمة+🍽'
    const { text } = await it.member.get(`/app/print?${query}`)
    expect(text).toContain('24 labels on 1 sheet')
    expect(text).not.toContain('no font of this service')
    expect(text).not.toContain('left out')
    const { bytes: svg } = await it.load(`/page.svg?${query}`)
    // Outlines: no program needs a font.
    expect(new TextDecoder().decode(svg)).not.toContain('<text')
    await Bun.write(files.path('page.svg'), svg)
    run('rsvg-convert', '-d', '150', '-p', '150', files.path('page.svg'), '-o', files.path('s.png'))
    const { bytes: pdf } = await it.load(`/labels.pdf?${query}`)
    const [drawn = ''] = await drawPages(pdf, files.dir, 150)
    for (const page of [files.path('s.png'), drawn]) {
      const found = await findCodes(page)
      expect(found.map((code) => code.text).sort()).toEqual(textsOf(it.codes))
      for (const { text: address, left, top, right, bottom } of found) {
        const [width, height] = [right - left + 24, bottom - top + 24].map(Math.ceil)
        const area = `${width}x${height}+${Math.floor(left - 12)}+${Math.floor(top - 12)}`
        run('convert', page, '-crop', area, '+repage', files.path('code.png'))
        expect([address, zbarReads(files.path('code.png'), address)]).toEqual([address, true])
      }
    }
    const preset = { name: 'World', caption: 'text', captionText: 'お品書き قائمة मेनू 🍽', mm: '30' }
    await it.member.post('/app/qr/presets', preset, { from: '/app/qr' })
    const page = await it.member.get('/app/print')
    const id = /<option value="(\d+)"[^>]*>World/.exec(page.text)?.[1]
    const zip = unzipSync((await it.load(`/codes.zip?file=png&preset=${id}`)).bytes)
    const images = Object.entries(zip).filter(([name]) => name !== 'codes.csv')
    expect(images).toHaveLength(24)
    for (const [name, image] of images) {
      // The preset has no `ref`.
      const address = `http://hop.test/${name.slice(0, 9)}`
      const { text: read, readers, width, height } = await decodeQr(image)
      expect([read, readers]).toEqual([address, ['jsQR', 'zxing']])
      expect(height).toBeGreaterThan(width)
    }
  },
)

test('a text that no font has is named at its field, and its PDF returns to the page', async () => {
  await using it = await withLinks(3)
  const query = `sent=1&codes=${it.codes.slice(0, 2).join()}&labels=3475&caption=Menü+お品`
  const { text } = await it.member.get(`/app/print?${query}`)
  expect(text).toMatch(/id="print-missing" role="status">No font of this service has お 品\./)
  // The browser has other fonts.
  expect(text).toContain('<img class="sheet"')
  expect((await it.load(`/labels.pdf?${query}`)).status).toBe(400)
  const refused = await it.member.get(`/app/print/labels.pdf?${query}`, { accept: 'text/html' })
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('No font of this service has お 品.')
  expect(refused.text).toContain('value="Menü お品"')
  expect(refused.text).toContain(`name="codes" value="${it.codes.slice(0, 2).join()}"`)
  expect(refused.text).toContain('2 labels on 1 sheet')
})

test('a refused file returns to the page with what was chosen, also without links', async () => {
  await using it = await withLinks(1)
  const accept = { accept: 'text/html' }
  const bad = await it.member.get('/app/print/labels.pdf?sent=1&columns=99&caption=Lunch', accept)
  expect(bad.status).toBe(422)
  expect(bad.text).toContain('id="field-columns-error"')
  expect(bad.text).toContain('value="Lunch"')
  const none = await it.member.get('/app/print/codes.zip?sent=1&q=nothing-matches', accept)
  expect(none.status).toBe(404)
  expect(none.text).toContain('No links to print')
})

test('labels have copies, and those of one link their numbers and words', async () => {
  await using it = await withLinks(2)
  using files = scratch()
  const readPdf = async (query: string) => {
    const { bytes } = await it.load(`/labels.pdf?sent=1&labels=3475&${query}`)
    const texts = []
    for (const page of await drawPages(bytes, files.dir, 150)) {
      texts.push(...(await findCodes(page)).map(({ text }) => text))
      rmSync(page)
    }
    return texts.sort()
  }
  const [first = '', second = ''] = textsOf(it.codes)
  expect(await readPdf('copies=3')).toEqual([first, first, first, second, second, second])
  const one = `codes=${it.codes[0]}`
  const numbered = [1, 2, 3].map((n) => first.replace('=qr', `=table-${n}`))
  expect(await readPdf(`${one}&count=3&word=table`)).toEqual(numbered)
  expect(await readPdf(`${one}&count=2&first=7&word=`)).toEqual([first, first])
  // Several links have no numbers.
  expect(await readPdf('count=3&word=table')).toEqual([first, second])
})

test('scans of numbered labels are known from the PDF or the print, as a table and as CSV', async () => {
  await using it = await withLinks(1)
  const { app, member } = it
  const query = `sent=1&codes=${it.codes[0]}&count=24&labels=3475`
  // A preview is no print.
  await it.load(`/page.svg?${query}&word=draft`)
  await it.load(`/labels.pdf?${query}&word=table`)
  expect((await it.load(`/keep?${query}&word=room`)).status).toBe(204)
  const words = ['table-1', 'table-24', 'table-24', 'room-7', 'draft-1']
  for (const word of words) {
    const headers = { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X)' }
    await app.call('GET', `/${it.codes[0]}?ref=${word}`, { headers })
  }
  await eventually('the visits are stored', async () => {
    const path = `/api/links/${it.codes[0]}/visits?by=referrer`
    return (await app.call('GET', path, { key: 'enterprise' })).body.known === words.length
  })
  const { text } = await member.get(`/app/links/${it.codes[0]}`)
  const [, card = ''] = /id="panel-scans">([\s\S]*?)<\/section>/.exec(text) ?? []
  expect(card).toContain('4 scans')
  expect(card).not.toContain('draft')
  const [, csv = ''] = /href="([^"]*visits\.csv[^"]*)"/.exec(card) ?? []
  const file = await member.get(csv.replaceAll('&amp;', '&'))
  expect(file.text).toContain('table-24,2')
  expect(file.text).toContain('room-7,1')
  expect(file.text).not.toContain('draft')
})

const measures = {
  paper: 'a4',
  columns: '2',
  rows: '5',
  width: '99.1',
  height: '57',
  left: '4.65',
  top: '6',
  gapX: '2.5',
  gapY: '0',
}

test('an account has own sheets of labels, at most 20', async () => {
  await using it = await withLinks(3)
  const { app, member } = it
  const from = '/app/print/formats'
  const save = (name: string, more = {}) =>
    member.post('/app/print/formats', { name, ...measures, ...more }, { from })
  expect((await save('Herma <5>')).location).toBe('/app/print/formats?done=saved')
  const { text } = await member.get('/app/print')
  const [, id = ''] = /<option value="own-(\d+)">Herma &lt;5&gt;/.exec(text) ?? []
  const { text: chosen } = await member.get(`/app/print?labels=own-${id}`)
  expect(chosen).toContain('3 labels on 1 sheet')
  expect((await it.load(`/labels.pdf?labels=own-${id}`)).status).toBe(200)
  const refusals = [
    { more: { width: '120' }, field: 'width' },
    { more: { rows: '6' }, field: 'height' },
    { more: { columns: 'x' }, field: 'columns' },
    { more: { columns: '1', rows: '1', width: '14' }, field: 'width' },
  ]
  for (const { more, field } of refusals) {
    const refused = await save('Bad', more)
    expect([field, refused.status]).toEqual([field, 422])
    expect(refused.text).toContain(`id="field-${field}-error"`)
    expect(refused.text).toContain('value="57"')
  }
  for (let n = 2; n <= 20; n++) expect((await save(`Sheet ${n}`)).status).toBe(303)
  expect((await save('Sheet 21')).status).toBe(422)
  expect((await save('Herma <5>', { rows: '4' })).status).toBe(303)
  const { labelFormats, accounts } = app.administration.data
  const accountId = accounts.findByEmail('enterprise@example.com')?.accountId ?? 0
  expect(labelFormats.list(accountId)).toHaveLength(20)
  await member.post('/app/print/formats/delete', { format: id }, { from })
  expect(labelFormats.list(accountId)).toHaveLength(19)
  expect((await it.load(`/labels.pdf?labels=own-${id}`)).status).toBe(400)
})

test('many sheets are shown in part, and a heading says what is printed', async () => {
  await using it = await withLinks(100)
  const { text } = await it.member.get('/app/print?labels=3475')
  expect(text).toContain('100 labels on 5 sheets')
  expect(text.match(/<img class="sheet"/g)).toHaveLength(3)
  const [, all = ''] = /href="([^"]*all=1[^"]*)"/.exec(text) ?? []
  const { text: whole } = await it.member.get(all.replaceAll('&amp;', '&'))
  expect(whole.match(/<img class="sheet"/g)).toHaveLength(5)
  const { text: cut } = await it.member.get('/app/print?labels=3475&copies=6')
  expect(cut).toContain('500 labels on 21 sheets')
  expect(cut).toContain('At most 500 labels at once')
})

test('a PDF asks print dialogs not to scale it', async () => {
  await using it = await withLinks(1)
  const { bytes } = await it.load('/labels.pdf')
  expect(Buffer.from(bytes).toString('latin1')).toContain('/PrintScaling /None')
})
