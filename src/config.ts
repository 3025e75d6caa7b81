import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { LOG_LEVELS } from './lib/log.ts'

/** The longest base whose short URLs still fit a QR code of 64 pixels at one pixel a module. */
const BASE_URL_MAX_LENGTH = 100

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((n) => n >= least && n <= most, `must be a whole number from ${least} to ${most}`)

/** An http(s) address without query, fragment or userinfo. The slash at its end is removed. */
const Address = z
  .string()
  .refine(isPlainAddress, 'must be an http:// or https:// address without query or fragment')
  .transform((text) => new URL(text).href.replace(/\/+$/, ''))

const list = z
  .string()
  .refine((text) => text === '' || /[^,\s]/.test(text), 'must name something between its commas')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  )

/** SQLite opens no path of more than 512 bytes, and ours are in folders below this one. */
const DATA_DIR_MAX_BYTES = 400

const BUDGET_MAX = 1_000_000
const MIB = 1024 * 1024
/** Link ids have 32 bits. */
const LINKS_MAX = 2 ** 32 - 1
const URL_BYTES_MAX = Number.MAX_SAFE_INTEGER
const LOG_REQUESTS = ['none', 'api', 'all'] as const

const Environment = z.object({
  PORT: wholeNumber(0, 65_535).default(3000),
  HOST: z.string().min(1, 'must not be empty').default('0.0.0.0'),
  BASE_URL: Address.refine(
    (url) => new URL(url).pathname === '/',
    'must have no path: Hopcode serves its pages and short links at the root of a host',
  )
    .refine(
      (url) => url.length <= BASE_URL_MAX_LENGTH,
      `must have at most ${BASE_URL_MAX_LENGTH} characters`,
    )
    .optional(),
  CDN_URL: Address.optional(),
  DATA_DIR: z
    .string()
    .min(1, 'must not be empty')
    .refine(
      (path) => Buffer.byteLength(resolve(path)) <= DATA_DIR_MAX_BYTES,
      `must be a path of at most ${DATA_DIR_MAX_BYTES} bytes`,
    )
    .default('./data'),
  /** IP addresses and CIDR ranges whose `X-Forwarded-For` is believed. */
  TRUSTED_PROXIES: list
    .refine((ranges) => ranges.every(isAddressRange), 'must be IP addresses or CIDR ranges')
    .default([]),
  // Requests in any 60 s; 0 means no limit.
  ANONYMOUS_READS_PER_MINUTE: wholeNumber(0, BUDGET_MAX).default(300),
  /** Redirects that find their link; the others are reads. */
  ANONYMOUS_REDIRECTS_PER_MINUTE: wholeNumber(0, BUDGET_MAX).default(6000),
  ENTERPRISE_WRITES_PER_MINUTE: wholeNumber(0, BUDGET_MAX).default(6000),
  ENTERPRISE_READS_PER_MINUTE: wholeNumber(0, BUDGET_MAX).default(30_000),
  ENTERPRISE_BULK_MAX: wholeNumber(1, 100_000).default(5000),
  /** For all sessions of an account together, or for an address without a session. */
  DASHBOARD_REQUESTS_PER_MINUTE: wholeNumber(0, BUDGET_MAX).default(600),
  // What the accounts of a plan may store; 0 means no limit. Bytes are those of URLs, titles, notes
  // and tags in UTF-8.
  FREE_LINKS_MAX: wholeNumber(0, LINKS_MAX).default(100_000),
  FREE_URL_BYTES_MAX: wholeNumber(0, URL_BYTES_MAX).default(32 * MIB),
  PRO_LINKS_MAX: wholeNumber(0, LINKS_MAX).default(1_000_000),
  PRO_URL_BYTES_MAX: wholeNumber(0, URL_BYTES_MAX).default(1024 * MIB),
  ENTERPRISE_LINKS_MAX: wholeNumber(0, LINKS_MAX).default(0),
  ENTERPRISE_URL_BYTES_MAX: wholeNumber(0, URL_BYTES_MAX).default(0),
  BLOCKLIST_FILES: list.default([]),
  LINK_CACHE_MAX: wholeNumber(1, 10_000_000).default(200_000),
  HIT_FLUSH_MS: wholeNumber(1, 60_000).default(250),
  /** Requests that get a line in the log; `api` means all except redirects. */
  LOG_REQUESTS: z.enum(LOG_REQUESTS, `must be one of ${LOG_REQUESTS.join(', ')}`).default('none'),
  /** A second address for metrics and probes, apart from the public one. */
  METRICS_LISTEN: z.string().transform(parseListen).optional(),
  /** Whether anybody may create an account in the dashboard. */
  SIGNUP: z.enum(['closed', 'open'], 'must be closed or open').default('closed'),
  SESSION_IDLE_MINUTES: wholeNumber(1, 7 * 24 * 60).default(30),
  SESSION_MAX_HOURS: wholeNumber(1, 90 * 24).default(12),
  HOPCODE_URL: Address.optional(),
  HOPCODE_API_KEY: z.string().optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
})

export interface Quota {
  linksMax: number
  /** Of all stored URLs in UTF-8. */
  urlBytesMax: number
}

interface Listen {
  host: string
  port: number
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** The settings, with defaults that depend on others filled in. */
export type Config = Readonly<ReturnType<typeof readConfig>>

/**
 * Reads the settings. An empty variable counts as absent. Throws ConfigError, whose one line lists
 * every bad setting.
 */
export function readConfig(environment: Record<string, string | undefined> = process.env) {
  const present = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  )
  const parsed = Environment.safeParse(present)
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`)
    throw new ConfigError(`Bad setting: ${lines.join('; ')}`)
  }
  const env = parsed.data
  if (env.PORT === 0 && env.BASE_URL === undefined) {
    throw new ConfigError('Bad setting: PORT must not be 0 without BASE_URL')
  }
  const baseUrl = env.BASE_URL ?? `http://localhost:${env.PORT}`
  return {
    port: env.PORT,
    host: env.HOST,
    // Neither address has a slash at its end.
    baseUrl,
    cdnUrl: env.CDN_URL ?? `${baseUrl}/cdn`,
    dataDir: resolve(env.DATA_DIR),
    trustedProxies: env.TRUSTED_PROXIES,
    anonymousReadsPerMinute: env.ANONYMOUS_READS_PER_MINUTE,
    anonymousRedirectsPerMinute: env.ANONYMOUS_REDIRECTS_PER_MINUTE,
    enterpriseWritesPerMinute: env.ENTERPRISE_WRITES_PER_MINUTE,
    enterpriseReadsPerMinute: env.ENTERPRISE_READS_PER_MINUTE,
    enterpriseBulkMax: env.ENTERPRISE_BULK_MAX,
    dashboardRequestsPerMinute: env.DASHBOARD_REQUESTS_PER_MINUTE,
    quotas: {
      free: { linksMax: env.FREE_LINKS_MAX, urlBytesMax: env.FREE_URL_BYTES_MAX },
      pro: { linksMax: env.PRO_LINKS_MAX, urlBytesMax: env.PRO_URL_BYTES_MAX },
      enterprise: {
        linksMax: env.ENTERPRISE_LINKS_MAX,
        urlBytesMax: env.ENTERPRISE_URL_BYTES_MAX,
      },
    },
    blocklistFiles: env.BLOCKLIST_FILES.map((file) => resolve(file)),
    linkCacheMax: env.LINK_CACHE_MAX,
    hitFlushMs: env.HIT_FLUSH_MS,
    signUp: env.SIGNUP,
    sessionIdleMinutes: env.SESSION_IDLE_MINUTES,
    sessionMaxHours: env.SESSION_MAX_HOURS,
    logLevel: env.LOG_LEVEL,
    logRequests: env.LOG_REQUESTS,
    metricsListen: env.METRICS_LISTEN,
    // For commands that call a service, here or elsewhere.
    remote: { url: env.HOPCODE_URL ?? baseUrl, apiKey: env.HOPCODE_API_KEY },
    // Whether the public address shows metrics to callers on this machine. Behind a proxy, every
    // caller may look like one.
    localMetrics: !env.METRICS_LISTEN && !isPublic(baseUrl, env.TRUSTED_PROXIES),
  }
}

/** TLS ends at a proxy. */
const isPublic = (baseUrl: string, proxies: readonly string[]): boolean =>
  baseUrl.startsWith('https:') || proxies.length > 0

function isPlainAddress(text: string): boolean {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.host === '') return false
  return url.search === '' && url.hash === '' && url.username === '' && url.password === ''
}

/** `127.0.0.1:9100`, `[::1]:9100` or `localhost:9100`. */
function parseListen(text: string, context: z.RefinementCtx): Listen {
  const [, bracketed, plain, digits] =
    /^(?:\[([\da-f:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/i.exec(text) ?? []
  const port = Number(digits)
  if (!(port <= 65_535)) {
    context.addIssue({ code: 'custom', message: 'must be an address and a port: 127.0.0.1:9100' })
  }
  return { host: bracketed ?? plain ?? '', port }
}

function isAddressRange(text: string): boolean {
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text)
}

/** A host as in a URL: an IPv6 address is in brackets. */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)
