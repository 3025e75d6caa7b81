import { accessSync, constants, statSync } from 'node:fs'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'

/** The kinds of values that settings have. Each message continues the name of a setting. */

export const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((n) => n >= least && n <= most, `must be a whole number from ${least} to ${most}`)

/** An http(s) address without query, fragment or userinfo. The slash at its end is removed. */
export const Address = z
  .string()
  .refine(isPlainAddress, 'must be an http:// or https:// address without query or fragment')
  .transform((text) => new URL(text).href.replace(/\/+$/, ''))

const PAGE_URL_MAX_LENGTH = 2048

/** A page that visitors are redirected to, as a `Location` header has it. */
export const PublicPage = z
  .string()
  .max(PAGE_URL_MAX_LENGTH, `must have at most ${PAGE_URL_MAX_LENGTH} characters`)
  .refine((text) => isWebUrl(URL.parse(text)), 'must be an http:// or https:// URL')
  .transform((text) => new URL(text).href)

export const list = z
  .string()
  .refine((text) => /[^,\s]/.test(text), 'must name something between its commas')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  )

const isWebUrl = (url: URL | null): url is URL =>
  url !== null &&
  /^https?:$/.test(url.protocol) &&
  url.host !== '' &&
  url.username === '' &&
  url.password === ''

function isPlainAddress(text: string): boolean {
  const url = URL.parse(text)
  return isWebUrl(url) && url.search === '' && url.hash === ''
}

export const OPERATOR_NAME_MAX = 60
const LOGO_BYTES_MAX = 64 * 1024

export function isLogoFile(path: string): boolean {
  if (!/\.(png|svg)$/i.test(path)) return false
  const file = statSync(path, { throwIfNoEntry: false })
  return file?.isFile() === true && file.size <= LOGO_BYTES_MAX
}

/** ipaddr.js also reads `10.1` as 10.0.0.1. */
export function isAddressRange(text: string): boolean {
  if (!isIP(text.replace(/\/.*/, ''))) return false
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text)
}

/** Values of `sslmode` that Bun's client knows. */
const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Why the client of PostgreSQL would not accept the URL. Without the URL, which has a password. */
export function findClusterUrlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length <= 1) {
    return 'must be postgres://user:password@host:port/database, with the signs @ / # ? % encoded'
  }
  try {
    decodeURIComponent(text)
  } catch {
    return 'must have each % of its user and password encoded as %25'
  }
  const mode = url.searchParams.get('sslmode')
  if (mode && !SSL_MODES.includes(mode)) {
    return `must have one of these as sslmode: ${SSL_MODES.join(', ')}`
  }
  const authority = url.searchParams.get('sslrootcert')
  try {
    if (authority) accessSync(authority, constants.R_OK)
  } catch (error) {
    return `must name a readable file as sslrootcert: ${(error as Error).message}`
  }
  return undefined
}
