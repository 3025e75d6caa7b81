import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { decodeQr } from '../../test/support/decode-qr.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { inProcess } from '../../test/support/in-process.ts'
import { PublicUrls } from '../addresses/urls.ts'
import { writePng } from '../draw/logo.ts'
import { parsePrintOptions, parseQrOptions } from '../draw/options.ts'
import { FORMATS } from '../draw/sheet.ts'
import { ClientAddress } from '../hot/client-address.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import { createLog } from '../lib/log.ts'
import { QrImages } from './images.ts'
import { readabilityChecks } from './readability.ts'
import { type RenderCommand, type Rendered, type Renderer, renderer } from './renderer.ts'

const ACCOUNT = 7
const CODES = ['SPRING26', 'SUMMER26', 'AUTUMN26'] as Code[]
const LINKS = CODES.map((code) => ({ code, domainId: 0 }))
const white = { width: 8, height: 8, data: new Uint8Array(256).fill(255) }

const primary = {
  id: 0,
  isPrimary: true,
  host: 'hop.test',
  codes: 'all',
  rootUrl: undefined,
  notFoundUrl: undefined,
} as const
const none = () => undefined
const domains = { primary, findByHost: none, findById: none, hostOf: none }

/** Images over a renderer in the same thread. `render`: in place of the real one. */
function imagesOf(render?: (command: RenderCommand) => Promise<Rendered>) {
  const folder = temporaryFolder()
  const real = renderer({ dir: join(folder.path, 'qr'), fonts: [] })
  const functions = render ? { ...real, render } : real
  const images = new QrImages({
    renderer: inProcess<Renderer>(functions),
    startChecks: async () => inProcess(readabilityChecks),
    dir: '/nowhere',
    addresses: new PublicUrls({
      baseUrl: 'http://hop.test',
      cdnUrl: 'http://hop.test/cdn',
      domains,
    }),
    data: {
      links: {
        findByCode: (code) => ({
          id: 1,
          code,
          accountId: ACCOUNT,
          url: null,
          createdAt: 0,
          domainId: 0,
          typedCode: null,
          alias: null,
        }),
      },
      qrSettings: {
        findLogo: (id) => (id === ACCOUNT ? { key: 'logo', png: writePng(white) } : undefined),
      },
    },
    log: createLog({ level: 'error', human: false, write: () => {} }),
  })
  return { images, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

test('one of many images has the options, the logo and the address that are given', async () => {
  const options = parseQrOptions({ logo: '1', caption: '1', size: '300', ref: 'poster' })
  using it = imagesOf()
  for (const link of LINKS) {
    const image = await it.images.render(link, options, ACCOUNT, {
      address: 'http://hop.test/menü',
    })
    expect((await decodeQr(image)).text).toBe('http://hop.test/menü?ref=poster')
  }
})

test('one ZIP of an account at a time', () => {
  using it = imagesOf()
  {
    using _ = it.images.holdZip(1)
    expect(() => it.images.holdZip(1)).toThrow()
    it.images.holdZip(2)[Symbol.dispose]()
  }
  it.images.holdZip(1)[Symbol.dispose]()
})

/** Clients by their addresses. */
const clientAt = (address: string) => new ClientAddress([]).parsePeer(address).client

const LINK = { code: CODES[0] as Code, domainId: 0 }

/** Images whose captions are `rendered` in their order, one in each tick. */
function captionsOf() {
  const rendered: string[] = []
  const it = imagesOf(async ({ options }) => {
    rendered.push(options.caption)
    return { image: new Uint8Array(1) }
  })
  const request = (by: string | number, caption: string, query = {}) => {
    const options = parseQrOptions({ size: '2048', caption, ...query })
    return it.images.render(LINK, options, typeof by === 'number' ? by : clientAt(by))
  }
  return { ...it, rendered, request, [Symbol.dispose]: () => it[Symbol.dispose]() }
}

const HEAVY = [
  { name: 'with a logo', query: { logo: '1' } },
  { name: 'with a caption', query: { level: 'H' } },
  { name: 'without a background', query: { transparent: '1', margin: '16' } },
]

test.each(HEAVY)('large images $name of two networks are drawn in turn', async ({ query }) => {
  using it = captionsOf()
  await Promise.all([
    ...['a1', 'a2', 'a3', 'a4', 'a5'].map((name, at) => it.request(`192.0.2.${at}`, name, query)),
    it.request('198.51.100.1', 'b1', query),
    it.request(ACCOUNT, 'c1', query),
  ])
  // The first one has begun before the others arrive.
  expect(it.rendered.slice(0, 5).sort()).toEqual(['a1', 'a2', 'a3', 'b1', 'c1'])
})

test('a small image is drawn before all large ones that have not begun', async () => {
  using it = captionsOf()
  const large = Array.from({ length: 300 }, (_, at) =>
    it.request(`192.0.${at % 8}.${at}`, 'large', { margin: String(at % 16) }),
  )
  await Promise.all([...large, it.request('198.51.100.1', '', { size: '256' })])
  expect(it.rendered.indexOf('')).toBe(1)
  expect(it.rendered).toHaveLength(301)
})

test('addresses of a network share its part, also with a small image among large ones', async () => {
  using it = captionsOf()
  await Promise.all([
    ...Array.from({ length: 20 }, () => it.request('192.0.2.1', 'a')),
    it.request('192.0.2.2', '', { size: '256' }),
    ...['c1', 'c2'].map((name) => it.request('198.51.100.1', name)),
  ])
  expect(it.rendered.slice(0, 5).sort()).toEqual(['', 'a', 'a', 'a', 'c1'])
})

test('images beyond the room for them are refused, those of the network with the most', async () => {
  using it = captionsOf()
  const many = Array.from({ length: 1000 }, (_, at) => it.request(`192.0.2.${at % 250}`, 'a'))
  const other = it.request('198.51.100.1', 'b')
  const outcomes = await Promise.allSettled(many)
  const refused = outcomes.filter(({ status }) => status === 'rejected')
  expect(refused.length).toBeGreaterThan(100)
  expect(refused.length).toBeLessThan(900)
  expect(refused[0]).toMatchObject({ reason: { status: 503, headers: { 'retry-after': '5' } } })
  await other
})

test('the batches of two accounts are rendered in turn', async () => {
  const texts: string[] = []
  using it = imagesOf(async ({ text }) => {
    texts.push(text.slice(-8))
    return { image: new Uint8Array(1) }
  })
  const many = async (codes: Code[], account: number) => {
    for (const code of codes) {
      const link = { code, domainId: 0 }
      await it.images.render(link, parseQrOptions({}), account, { isPrint: true })
    }
  }
  const [spring, summer, autumn] = CODES as [Code, Code, Code]
  const ofOne = Array.from({ length: 3 }, () => many([spring, summer], 1))
  await Promise.all([...ofOne, many([autumn], 2)])
  expect(texts.indexOf(autumn)).toBeLessThan(3)
  expect(texts).toHaveLength(7)
})

test('texts without room are counted page by page, with the images of others between', async () => {
  const events: string[] = []
  using it = imagesOf(async () => {
    events.push('image')
    return { image: new Uint8Array(1) }
  })
  const options = parsePrintOptions({})
  const { grid } = FORMATS.l7160 ?? {}
  assert(grid, 'a known format')
  const label = { text: 'http://hop.test/A', title: 'W'.repeat(200), caption: '', address: '' }
  const sheet = { grid, hasCropMarks: false, options, labels: [undefined, label, label] }
  const finding = it.images.findLeftOut(Array(20).fill(sheet), ACCOUNT)
  const counted = finding.then(({ withoutRoom }) => events.push(`${withoutRoom.length} texts`))
  const image = it.images.render({ code: CODES[0] as Code, domainId: 0 }, options, ACCOUNT + 1)
  await Promise.all([counted, image])
  expect(events).toEqual(['image', '40 texts'])
})

test('a check needs no answer of the thread that renders', async () => {
  const { promise } = Promise.withResolvers<Rendered>()
  using it = imagesOf(() => promise)
  void it.images.render(
    { code: CODES[0] as Code, domainId: 0 },
    parseQrOptions({ logo: '1' }),
    ACCOUNT,
  )
  expect(await it.images.checkLogo(writePng(white), { accountId: ACCOUNT })).toHaveProperty('png')
  expect(await it.images.isReadable({ options: parseQrOptions({}) }, { accountId: ACCOUNT })).toBe(
    true,
  )
})

const FREE = { blocks: 1000, bavail: 100, files: 1000, ffree: 100 }
const disks = [
  { name: 'a tenth of blocks and inodes', free: FREE, isStored: true },
  { name: 'fewer blocks', free: { ...FREE, bavail: 99 }, isStored: false },
  { name: 'fewer inodes', free: { ...FREE, ffree: 99 }, isStored: false },
  { name: 'no fixed number of inodes', free: { ...FREE, files: 0, ffree: 0 }, isStored: true },
]
test.each(disks)('images are stored or only rendered by what is free: $name', async (disk) => {
  using folder = temporaryFolder()
  const { store, storeAll } = renderer({ dir: folder.path, fonts: [] }, () => disk.free)
  const text = 'http://hop.test/SPRING26'
  const image = store({ code: 'SPRING26', domain: null, text })
  storeAll([{ code: 'SUMMER26', domain: null, text }])
  expect((await decodeQr(image)).text).toBe(text)
  const files = [...new Bun.Glob('*.png').scanSync(folder.path)].sort()
  expect(files).toEqual(disk.isStored ? ['SPRING26.png', 'SUMMER26.png'] : [])
})
