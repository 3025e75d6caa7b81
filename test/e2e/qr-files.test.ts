import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import { rawRequest } from '../support/conversation.ts'
import { decodeQr } from '../support/decode-qr.ts'

/** The stored images, `<cdn_url>/qr/<code>.png`: the spec's `qr_storage_url`, and design 4.18. */

interface Link {
  code: string
  passcode: string
}

const folderOf = ({ dataDir }: TestApp) => join(dataDir, 'cdn', 'qr')
const fileOf = (app: TestApp, code: string) => join(folderOf(app), `${code}.png`)

function storedCodes(app: TestApp): string[] {
  const names = existsSync(folderOf(app)) ? readdirSync(folderOf(app)) : []
  return names.filter((name) => name.endsWith('.png')).map((name) => name.slice(0, -4))
}

async function stored(app: TestApp, codes: string[]): Promise<void> {
  await eventually(`images of ${codes.length} codes`, () => {
    return codes.every((code) => existsSync(fileOf(app, code)))
  })
}

const textIn = async (bytes: Uint8Array) => (await decodeQr(bytes)).text

async function shortenMany(app: TestApp, count: number): Promise<Link[]> {
  const urls = Array.from({ length: count }, (_, i) => `https://example.com/${i}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', {
    key: 'enterprise',
    json: { urls },
  })
  return (body.results as Link[]).map(({ code, passcode }) => ({ code, passcode }))
}

// spec: Code (short link) | qr_storage_url
// design: 1 QR PNGs are precomputed
test('each new code has its image on disk before anyone asks for it', async () => {
  await using app = await testApp()
  const shortened = await app.shorten('https://example.com/landing')
  const reserved = await app.reserve('SPRING26')
  const many = await shortenMany(app, 3)
  const codes = [shortened, reserved, ...many].map(({ code }) => code)
  await stored(app, codes)
  for (const code of codes) {
    const { text, width, height } = await decodeQr(readFileSync(fileOf(app, code)))
    expect([text, width, height]).toEqual([`http://hop.test/${code}`, 512, 512])
  }
  const refused = { key: 'free', json: { code: 'SPRING26' } }
  expect((await app.call('POST', '/api/reserve', refused)).status).toBe(409)
  expect((await app.call('POST', '/api/shorten', { key: 'free', json: { url: 'x' } })).status).toBe(
    400,
  )
  expect(storedCodes(app).sort()).toEqual(codes.sort())
})

// design: 4.18 QR files
test('GET /qr/{code} redirects to an image that exists at once, for the first request too', async () => {
  await using app = await testApp()
  const links = await shortenMany(app, 20)
  for (const { code } of links.toReversed()) {
    const { headers } = await app.call('GET', `/qr/${code}`)
    const location = new URL(headers.get('location') ?? '')
    const image = await app.call('GET', location.pathname)
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png'])
    expect(image.bytes.length).toBeGreaterThan(0)
  }
  const [first] = links as [Link]
  const image = await app.call('GET', `/cdn/qr/${first.code}.png`)
  expect(await textIn(image.bytes)).toBe(`http://hop.test/${first.code}`)
  expect(image.headers.get('cache-control')).toBe('public, max-age=86400, immutable')
  const head = await app.call('HEAD', `/cdn/qr/${first.code}.png`)
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'image/png'])
  expect(head.bytes.length).toBe(0)
})

const losses = [
  { name: 'deleted', lose: (app: TestApp) => rmSync(fileOf(app, 'SPRING26')) },
  { name: 'emptied', lose: (app: TestApp) => writeFileSync(fileOf(app, 'SPRING26'), '') },
  {
    name: 'deleted with its folder',
    lose: (app: TestApp) => rmSync(join(app.dataDir, 'cdn'), { recursive: true }),
  },
]

// design: 4.18 QR files
test.each(losses)(
  'an image whose file is $name is made anew when it is asked for',
  async ({ lose }) => {
    await using app = await testApp()
    await app.reserve('SPRING26')
    await stored(app, ['SPRING26'])
    lose(app)
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => app.call('GET', '/cdn/qr/SPRING26.png')),
    )
    for (const { status, bytes } of answers) {
      expect(status).toBe(200)
      expect(bytes).toEqual(answers[0]?.bytes as Uint8Array)
    }
    expect(await textIn(answers[0]?.bytes as Uint8Array)).toBe('http://hop.test/SPRING26')
    await eventually('the file is whole again', () => {
      return existsSync(fileOf(app, 'SPRING26')) && statSync(fileOf(app, 'SPRING26')).size > 0
    })
    expect(await textIn(readFileSync(fileOf(app, 'SPRING26')))).toBe('http://hop.test/SPRING26')
  },
)

// design: 4.18 QR files
test('a disk that takes no image stops no image from being served, and no code from being made', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  await stored(app, ['SPRING26'])
  rmSync(join(app.dataDir, 'cdn'), { recursive: true })
  writeFileSync(join(app.dataDir, 'cdn'), 'in the way')
  await app.reserve('SUMMER26')
  for (const code of ['SPRING26', 'SUMMER26']) {
    const { status, bytes } = await app.call('GET', `/cdn/qr/${code}.png`)
    expect(status).toBe(200)
    expect(await textIn(bytes)).toBe(`http://hop.test/${code}`)
  }
})

// spec: States and transitions | deleted
// design: 4.18 QR files
test('deleting a code makes its image 404 at once and removes its file', async () => {
  await using app = await testApp()
  const json = await app.reserve('SPRING26')
  await app.reserve('SUMMER26')
  await stored(app, ['SPRING26', 'SUMMER26'])
  await app.call('POST', '/api/delete', { key: 'free', json })
  for (const file of ['SPRING26', 'spring26', 'NOBODY1']) {
    const { status, headers } = await app.call('GET', `/cdn/qr/${file}.png`)
    expect([file, status]).toEqual([file, 404])
    expect(headers.get('content-type')).toStartWith('application/json')
    expect(headers.get('cache-control') ?? '').not.toContain('max-age')
  }
  await eventually('the file goes away', () => !existsSync(fileOf(app, 'SPRING26')))
  expect(storedCodes(app)).toEqual(['SUMMER26'])
  await app.reserve('SPRING26', 'pro')
  await stored(app, ['SPRING26'])
  expect((await app.call('GET', '/cdn/qr/SPRING26.png')).status).toBe(200)
})

// design: 4.18 deleting a code removes its file
test('an image that is asked for while its code is being deleted does not stay behind', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const links = await shortenMany(app, 20)
  const codes = links.map(({ code }) => code)
  await stored(app, codes)
  for (const code of codes) rmSync(fileOf(app, code))
  for (const json of links) {
    let isDeleted = false
    const deleted = app.call('POST', '/api/delete', { key: 'enterprise', json }).then((answer) => {
      isDeleted = true
      return answer.status
    })
    const asked: Promise<unknown>[] = []
    while (!isDeleted && asked.length < 30) {
      asked.push(app.call('GET', `/cdn/qr/${json.code}.png`))
      await new Promise(setImmediate)
    }
    await Promise.all(asked)
    expect(await deleted).toBe(200)
  }
  // Images leave in the order of the deletions: once this last one is gone, all should be.
  const last = await app.reserve('LASTONE')
  await stored(app, ['LASTONE'])
  await app.call('POST', '/api/delete', { key: 'free', json: last })
  await eventually('the last file goes away', () => !existsSync(fileOf(app, 'LASTONE')))
  expect(storedCodes(app)).toEqual([])
})

// design: 4.18 another BASE_URL
test('after a restart with another BASE_URL every image encodes the new address, those never asked for too', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const links = await shortenMany(app, 12)
  const codes = links.map(({ code }) => code)
  await stored(app, codes)
  const [gone, ...rest] = codes as [string, ...string[]]
  await app.call('POST', '/api/delete', { key: 'enterprise', json: links[0] })
  await app.stop()
  const env = { ...UNLIMITED, BASE_URL: 'https://new.test' }
  await using again = await testApp({ dataDir: app.dataDir, env })
  const asked = rest[5] as string
  const shortUrl = `https://new.test/${asked}`
  for (const path of [`/cdn/qr/${asked}.png`, `/api/qr/${asked}`, `/api/qr/${asked}?format=svg`]) {
    const { bytes } = await again.call('GET', path)
    expect([path, await textIn(bytes)]).toEqual([path, shortUrl])
  }
  expect((await again.call('GET', `/api/qr-image/${asked}`)).body).toMatchObject({
    short_url: shortUrl,
    qr_url: `https://new.test/qr/${asked}`,
    qr_storage_url: `https://new.test/cdn/qr/${asked}.png`,
  })
  await stored(again, rest)
  for (const code of rest) {
    expect(await textIn(readFileSync(fileOf(again, code)))).toBe(`https://new.test/${code}`)
  }
  expect(storedCodes(again)).not.toContain(gone)
})

// design: 4.18 another BASE_URL
test('a change of BASE_URL taken back before every image was made anew leaves no image of the other address', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const codes = (await shortenMany(app, 400)).map(({ code }) => code)
  await app.stop()
  const mistaken = { ...UNLIMITED, BASE_URL: 'https://mistaken.test' }
  await using other = await testApp({ dataDir: app.dataDir, env: mistaken })
  const asked = codes.at(-1) as string
  const { bytes } = await other.call('GET', `/cdn/qr/${asked}.png`)
  expect(await textIn(bytes)).toBe(`https://mistaken.test/${asked}`)
  await other.stop()
  await using again = await testApp({ dataDir: app.dataDir, env: UNLIMITED })
  for (const code of [asked, ...codes.slice(0, 3)]) {
    const image = await again.call('GET', `/cdn/qr/${code}.png`)
    expect(await textIn(image.bytes)).toBe(`http://hop.test/${code}`)
  }
})

// spec: Code (short link) | qr_storage_url
test('another CDN_URL changes where the images are said to be, and not what they encode', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  await app.stop()
  const env = { CDN_URL: 'https://images.example' }
  await using again = await testApp({ dataDir: app.dataDir, env })
  const { headers } = await again.call('GET', '/qr/SPRING26')
  expect(headers.get('location')).toBe('https://images.example/qr/SPRING26.png')
  expect((await again.call('GET', '/api/qr-image/SPRING26')).body).toMatchObject({
    qr_storage_url: 'https://images.example/qr/SPRING26.png',
    short_url: 'http://hop.test/SPRING26',
  })
  await stored(again, ['SPRING26'])
  expect(await textIn(readFileSync(fileOf(again, 'SPRING26')))).toBe('http://hop.test/SPRING26')
})

const tricks = [
  '/cdn/secret.key',
  '/cdn/../secret.key',
  '/cdn/%2e%2e/secret.key',
  '/cdn/..%2fsecret.key',
  '/cdn/qr/..%2f..%2fsecret.key',
  '/cdn/qr/..%2F..%2Fsecret.key.png',
  '/cdn/qr/%2e%2e%2f',
  '/cdn/qr/../../secret.key',
  '/cdn/qr/..%5c..%5csecret.key',
  '/cdn/qr/..%252f..%252fsecret.key',
  '/cdn/qr/.unfinished',
  '/cdn/qr/.unfinished/',
  '/cdn/qr/.unfinished/SPRING26.png',
  '/cdn/qr/.',
  '/cdn/qr/SPRING26.png/..',
  '/cdn/qr/SPRING26.png/../..',
  '/cdn/qr/SPRING26.png/x',
  '/cdn/qr/..',
  '/cdn/qr/SPRING26',
  '/cdn/qr/SPRING26.svg',
  '/cdn/qr/.png',
  '/cdn/qr/',
  '/cdn/qr',
  '/cdn',
  '/cdn/',
  '/cdn/qr/SPRING26.png%00',
  '/cdn/qr/SPRING26%00.png',
  '/cdn/qr/SPRING26.png%2f..%2fSPRING26.png',
  '/cdn/qr/%2fetc%2fpasswd',
  '/cdn//etc/passwd',
  '/cdn/qr/%zz.png',
  '/cdn/hopcode.db',
  '/hopcode.db',
]

// design: 4.18 QR files
test('no path trick reaches a file, inside the image folder or outside it', async () => {
  await using app = await testApp({ env: UNLIMITED })
  await app.reserve('SPRING26')
  await stored(app, ['SPRING26'])
  writeFileSync(join(folderOf(app), '.unfinished'), 'unfinished')
  writeFileSync(join(app.dataDir, 'cdn', 'secret.key.png'), 'secret')
  expect(readdirSync(app.dataDir)).toEqual(expect.arrayContaining(['secret.key', 'hopcode.db']))
  for (const target of tricks) {
    const { status, headers, text } = await rawRequest(app.url, [`GET ${target} HTTP/1.1`])
    expect([target, status]).toEqual([target, 404])
    expect([target, headers.get('content-type')]).toEqual([target, expect.stringMatching(/json/)])
    expect(JSON.parse(text)).toEqual({ error: expect.any(String) })
  }
})
