import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { decodeQr } from '../../test/support/decode-qr.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { inProcess } from '../../test/support/in-process.ts'
import type { Code } from '../lib/code.ts'
import { createLog } from '../lib/log.ts'
import { PublicUrls } from '../links/link.ts'
import { QrImages } from './images.ts'
import { writePng } from './logo.ts'
import { parseQrOptions } from './options.ts'
import { type Rendered, type Renderer, renderer } from './renderer.ts'

const ACCOUNT = 7
const CODES = ['SPRING26', 'SUMMER26', 'AUTUMN26'] as Code[]
const white = { width: 8, height: 8, data: new Uint8Array(256).fill(255) }

/** Images over a renderer in the same thread. `render`: in place of the real one. */
function imagesOf(render?: () => Promise<Rendered>) {
  const folder = temporaryFolder()
  const real = renderer({ dir: join(folder.path, 'qr') })
  const functions = render ? { ...real, render } : real
  const images = new QrImages({
    renderer: inProcess<Renderer>(functions),
    dir: '/nowhere',
    addresses: new PublicUrls({ baseUrl: 'http://hop.test', cdnUrl: 'http://hop.test/cdn' }),
    reads: { findByCode: (code) => ({ id: 1, code, accountId: ACCOUNT, url: null, createdAt: 0 }) },
    store: {
      findLogo: (id) => (id === ACCOUNT ? { key: 'logo', png: writePng(white) } : undefined),
    },
    log: createLog({ level: 'error', human: false, write: () => {} }),
  })
  return { images, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

const OVERLOADED = { code: 'overloaded', status: 503 }

test('renderMany gives one image for each code, in their order', async () => {
  const options = parseQrOptions({ logo: '1', caption: '1', size: '300' })
  using it = imagesOf()
  const images = await it.images.renderMany(CODES, options, ACCOUNT)
  const texts = []
  for (const { code, image } of images) texts.push([code, (await decodeQr(image)).text])
  expect(texts).toEqual(CODES.map((code) => [code, `http://hop.test/${code}`]))
})

test('an account has one renderMany or check at a time', async () => {
  using it = imagesOf()
  const { images } = it
  const first = images.renderMany(CODES, parseQrOptions({}), ACCOUNT)
  for (const more of [
    images.renderMany(CODES, parseQrOptions({}), ACCOUNT),
    images.checkLogo(ACCOUNT, writePng(white)),
    images.isReadable(ACCOUNT, { options: parseQrOptions({}) }),
  ]) {
    await expect(more).rejects.toMatchObject(OVERLOADED)
  }
  expect(await images.renderMany(CODES, parseQrOptions({}), 8)).toHaveLength(3)
  expect(await first).toHaveLength(3)
  expect(await images.renderMany(CODES, parseQrOptions({}), ACCOUNT)).toHaveLength(3)
})

test('images with a logo that wait are limited for each client and in total', async () => {
  const { promise, resolve } = Promise.withResolvers<Rendered>()
  using it = imagesOf(() => promise)
  const { images } = it
  const large = parseQrOptions({ logo: '1', size: '2048' })
  const [code] = CODES as [Code]
  const request = (client: string) => images.render(code, large, client)
  const waiting = [request('a'), request('a')]
  expect(request('a')).rejects.toMatchObject(OVERLOADED)
  waiting.push(request('b'), request('b'))
  expect(request('c')).rejects.toMatchObject(OVERLOADED)
  // Images without a logo have no such limit.
  waiting.push(images.render(code, parseQrOptions({ size: '2048' }), 'a'))
  const image = new Uint8Array(1)
  resolve({ image })
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => image))
  expect(await request('a')).toEqual(image)
})
