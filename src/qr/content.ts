import { readableHost } from '../addresses/shown-host.ts'
import { type QrOptions, URL_CAPTION } from '../draw/options.ts'
import { AppError } from '../errors.ts'
import { decodePercent } from '../lib/percent.ts'

/**
 * A path of capitals and digits means the same in capitals, and a scheme and a host always do. All
 * characters are of the alphanumeric mode, which needs fewer modules.
 */
const CAPITAL_PATH = /^https?:\/\/[\w.:-]+\/[A-Z0-9$*+./:-]*$/

/** Whether `capitals` does not change where the address leads. */
export const canBeCapital = (address: string): boolean => CAPITAL_PATH.test(address)

/** The text in the code of an address. Throws `invalid_value` for one that needs small letters. */
export function contentOf(address: string, { capitals, ref }: Pick<QrOptions, 'capitals' | 'ref'>) {
  if (capitals && !canBeCapital(address)) {
    throw new AppError('invalid_value', 'Invalid capitals: the path of the address has others')
  }
  const text = capitals ? address.toUpperCase() : address
  return ref === undefined ? text : `${text}?ref=${ref}`
}

const NAME_LENGTH_MAX = 80

/** The name of a link's file without its ending: the path of its address, and its title. */
export function fileNameOf(address: string, title = ''): string {
  const path = decodeURI(new URL(address).pathname)
  const words = `${path} ${title}`.normalize('NFC').match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  return [...words.join('-')].slice(0, NAME_LENGTH_MAX).join('')
}

/**
 * The address as people type it: without its scheme, in Unicode. Empty for one with signs that
 * browsers do not send as they are typed.
 */
export function readable(address: string): string {
  const [, host = '', path = ''] = /^\w+:\/\/([^/]*)(.*)/s.exec(address) ?? []
  const text = `${readableHost(host)}${decodePercent(path) ?? path}`.normalize('NFC')
  return /[%\p{C}]/u.test(text) ? '' : text
}

/** The text of the caption: with `URL_CAPTION`, the address. */
export const captionOf = ({ caption }: Pick<QrOptions, 'caption'>, address: string): string =>
  caption === URL_CAPTION ? readable(address) : caption
