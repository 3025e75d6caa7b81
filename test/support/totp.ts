import { createHmac } from 'node:crypto'
import type { TestApp } from './app.ts'
import { PASSWORD, type Seen, type Visitor } from './dashboard.ts'

/** An authenticator app, written from RFC 6238 and not from the library that the service uses. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The code of a base32 key, `steps` of 30 seconds from `now`. */
export function codeOf(key: string, now: number, steps = 0): string {
  const bits = [...key].map((c) => ALPHABET.indexOf(c).toString(2).padStart(5, '0')).join('')
  const bytes = bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(now / 30_000) + steps))
  const digest = createHmac('sha1', Buffer.from(bytes)).update(counter).digest()
  const offset = (digest.at(-1) ?? 0) & 15
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

export const TWO_FACTOR = '/app/account/two-factor'

/** The key that a page shows for typing. */
export const keyIn = ({ text }: Seen): string =>
  />([A-Z2-7 ]{39})<\/span>/.exec(text)?.[1]?.replaceAll(' ', '') ?? ''

/** Turns two-factor sign-in on for somebody who is signed in. */
export async function enableTwoFactor(
  app: TestApp,
  visitor: Visitor,
): Promise<{ key: string; recoveryCodes: string[] }> {
  const begun = await visitor.post(
    `${TWO_FACTOR}/begin`,
    { current: PASSWORD },
    { from: TWO_FACTOR },
  )
  const key = keyIn(begun)
  const sent = { code: codeOf(key, app.now()), csrf: begun.csrf }
  const { text } = await visitor.post(`${TWO_FACTOR}/confirm`, sent)
  return { key, recoveryCodes: text.match(/\b[A-Z2-9]{5}-[A-Z2-9]{5}\b/g) ?? [] }
}
