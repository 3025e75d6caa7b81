import { PNG } from 'pngjs'
import type { TestApp } from './app.ts'
import type { Visitor } from './dashboard.ts'

/** Logos of tests, and the form that uploads them. */

const SVG_START = '<svg xmlns="http://www.w3.org/2000/svg" '

export const svgLogo = (inner: string, attributes = 'viewBox="0 0 100 100"'): string =>
  `${SVG_START}${attributes}>${inner}</svg>`

export const RED_SVG = svgLogo('<circle cx="50" cy="50" r="50" fill="#cc0000"/>')

/** A PNG of one opaque color. */
export function pngLogo(width: number, height = width): Uint8Array<ArrayBuffer> {
  const image = new PNG({ width, height })
  for (let at = 0; at < image.data.length; at += 4) image.data.writeUInt32BE(0x008844ff, at)
  return new Uint8Array(PNG.sync.write(image))
}

/** Masks that refer to each other: drawing them takes years. */
const masks = Array.from({ length: 15 }, (_, i) => {
  const inner = `<rect width="99" height="99" fill="#fff" mask="url(#m${i - 1})"/>`.repeat(40)
  return `<mask id="m${i}">${inner}</mask>`
})
export const maskBomb = svgLogo(`${masks.join('')}<rect width="99" height="99" mask="url(#m14)"/>`)

/** Sends the form of /app/qr as a browser does. */
export async function uploadLogo(
  app: TestApp,
  visitor: Visitor,
  logo: string | Uint8Array<ArrayBuffer>,
) {
  const body = new FormData()
  body.set('csrf', (await visitor.get('/app/qr')).csrf)
  body.set('logo', new File([logo], 'logo'))
  const cookie = [...visitor.cookies].map(([key, value]) => `${key}=${value}`).join('; ')
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
