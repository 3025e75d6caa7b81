import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { decodeQr } from '../../test/support/decode-qr.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { inProcess } from '../../test/support/in-process.ts'
import { PublicUrls } from '../addresses/urls.ts'
import type { Code } from '../lib/code.ts'
import { createLog } from '../lib/log.ts'
import { QrImages } from './images.ts'
import { writePng } from './logo.ts'
import { parseQrOptions } from './options.ts'
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
  const real = renderer({ dir: join(folder.path, 'qr') })
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
    const image = await it.images.renderOne(link, options, ACCOUNT, 'http://hop.test/menü')
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

test('images of two clients with a logo are rendered in turn, and none is refused', async () => {
  const rendered: string[] = []
  const done: string[] = []
  using it = imagesOf(async ({ options }) => {
    rendered.push(options.caption)
    return { image: new Uint8Array(1) }
  })
  const request = async (client: string, name: string, logo = '1') => {
    const options = parseQrOptions({ logo, size: '2048', caption: name })
    await it.images.render({ code: CODES[0] as Code, domainId: 0 }, options, client)
    done.push(name)
  }
  await Promise.all([
    ...['a1', 'a2', 'a3'].map((name) => request('a', name)),
    request('b', 'b1'),
    request('a', 'plain', '0'),
  ])
  // An image without a logo does not wait for the others.
  expect(rendered.indexOf('plain')).toBeLessThan(2)
  expect(rendered.filter((name) => name !== 'plain')).toEqual(['a1', 'a2', 'b1', 'a3'])
  expect(done).toHaveLength(5)
})

test('the batches of two accounts are rendered in turn', async () => {
  const texts: string[] = []
  using it = imagesOf(async ({ text }) => {
    texts.push(text.slice(-8))
    return { image: new Uint8Array(1) }
  })
  const many = async (codes: Code[], account: number) => {
    for (const code of codes) {
      await it.images.renderOne(
        { code, domainId: 0 },
        parseQrOptions({}),
        account,
        `http://hop.test/${code}`,
      )
    }
  }
  const [spring, summer, autumn] = CODES as [Code, Code, Code]
  const ofOne = Array.from({ length: 3 }, () => many([spring, summer], 1))
  await Promise.all([...ofOne, many([autumn], 2)])
  expect(texts.indexOf(autumn)).toBeLessThan(3)
  expect(texts).toHaveLength(7)
})

test('a check needs no answer of the thread that renders', async () => {
  const { promise } = Promise.withResolvers<Rendered>()
  using it = imagesOf(() => promise)
  void it.images.render({ code: CODES[0] as Code, domainId: 0 }, parseQrOptions({ logo: '1' }), 'a')
  expect(await it.images.checkLogo(writePng(white), { accountId: ACCOUNT })).toHaveProperty('png')
  expect(await it.images.isReadable({ options: parseQrOptions({}) }, { accountId: ACCOUNT })).toBe(
    true,
  )
})
