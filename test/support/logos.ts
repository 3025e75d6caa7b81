import { PNG } from 'pngjs'
import type { TestApp } from './app.ts'
import type { Visitor } from './dashboard.ts'

/** Logos of tests, and the form that uploads them. */

export const RED_SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">' +
  '<circle cx="50" cy="50" r="50" fill="#cc0000"/></svg>'

/** A PNG of one color. */
export function pngLogo(
  width: number,
  height = width,
  color = '008844ff',
): Uint8Array<ArrayBuffer> {
  const image = new PNG({ width, height })
  for (let at = 0; at < image.data.length; at += 4) image.data.write(color, at, 'hex')
  return new Uint8Array(PNG.sync.write(image))
}

/** A PNG whose squares of one pixel take the decoder of QR codes longest. */
export function chessboardLogo(side: number): Uint8Array<ArrayBuffer> {
  const image = new PNG({ width: side, height: side })
  for (let at = 0; at < side * side; at++) {
    const isDark = (Math.floor(at / side) + at) % 2 === 0
    image.data.write(isDark ? '000000ff' : 'ffffffff', 4 * at, 'hex')
  }
  // A file of a few kB.
  return new Uint8Array(PNG.sync.write(image, { deflateStrategy: 0, filterType: 0 }))
}

/** Sends the form of /app/qr as a browser does. */
export async function uploadLogo(
  app: Pick<TestApp, 'url'>,
  visitor: Visitor,
  logo: string | Uint8Array<ArrayBuffer>,
) {
  const body = new FormData()
  body.set('csrf', (await visitor.get('/app/qr')).csrf)
  body.set('logo', new File([logo], 'logo'))
  const { cookie } = visitor
  const headers = { cookie, 'sec-fetch-site': 'same-origin' }
  const answer = await fetch(`${app.url}/app/qr/logo`, {
    method: 'POST',
    headers,
    body,
    redirect: 'manual',
  })
  return {
    status: answer.status,
    location: answer.headers.get('location'),
    text: await answer.text(),
  }
}
