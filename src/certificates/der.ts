import { type KeyObject, sign, type X509Certificate } from 'node:crypto'

/** The few structures of ASN.1 (DER) that a request for a certificate needs. */

const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const SEQUENCE = 0x30
const SET = 0x31
const ATTRIBUTES = 0xa0
const DNS_NAME = 0x82

/** Object identifiers, with tag and length. */
const EXTENSION_REQUEST = Buffer.from('06092a864886f70d01090e', 'hex')
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex')
const AUTHORITY_KEY = Buffer.from('0603551d23', 'hex')
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const { length } = body
  const long = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  const size = length < 0x80 ? [length] : long
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}

/** A request for a certificate of these hosts (RFC 2986). `keys`: of the curve P-256. */
export function certificateRequest(
  names: readonly string[],
  keys: { publicKey: KeyObject; privateKey: KeyObject },
): Buffer {
  const hosts = names.map((name) => der(DNS_NAME, Buffer.from(name)))
  const extension = der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, der(SEQUENCE, ...hosts)))
  const attribute = der(SEQUENCE, EXTENSION_REQUEST, der(SET, der(SEQUENCE, extension)))
  const info = der(
    SEQUENCE,
    der(INTEGER, Buffer.of(0)),
    // The subject has no name: the hosts are in the extension.
    der(SEQUENCE),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(ATTRIBUTES, attribute),
  )
  const signature = der(BIT_STRING, Buffer.of(0), sign('sha256', info, keys.privateKey))
  return der(SEQUENCE, info, der(SEQUENCE, ECDSA_WITH_SHA256), signature)
}

/**
 * How an authority names a certificate (RFC 9773, section 4.1). Undefined for one that does not say
 * which key has signed it.
 */
export function renewalId({ raw, serialNumber }: X509Certificate): string | undefined {
  const at = raw.indexOf(AUTHORITY_KEY)
  if (at < 0) return undefined
  // The extension is an octet string with a sequence, whose first field, 0, is the key.
  const after = raw.subarray(at + AUTHORITY_KEY.length)
  const length = after[5] ?? 0
  if (after[0] !== OCTET_STRING || after[2] !== SEQUENCE || after[4] !== 0x80) return undefined
  const serial = Buffer.from(
    serialNumber.padStart(2 * Math.ceil(serialNumber.length / 2), '0'),
    'hex',
  )
  // An integer whose first bit is set has a zero before it.
  const digits = (serial[0] ?? 0) < 0x80 ? serial : Buffer.concat([Buffer.of(0), serial])
  return `${after.subarray(6, 6 + length).toString('base64url')}.${digits.toString('base64url')}`
}
