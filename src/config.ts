import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism, hostname } from 'node:os'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { LOG_LEVELS } from './lib/log.ts'
import { decodePercent } from './lib/percent.ts'

/** The kinds of values that settings have. Each message continues the name of a setting. */

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

const WebAddress = z.url({ protocol: /^https$/, normalize: true })

const PAGE_URL_MAX_LENGTH = 2048

/** A page that visitors are redirected to, as a `Location` header has it. */
const PublicPage = z
  .string()
  .max(PAGE_URL_MAX_LENGTH, `must have at most ${PAGE_URL_MAX_LENGTH} characters`)
  .refine((text) => isWebUrl(URL.parse(text)), 'must be an http:// or https:// URL')
  .transform((text) => new URL(text).href)

const list = z
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

const OPERATOR_NAME_MAX = 60
const LOGO_BYTES_MAX = 64 * 1024

function isLogoFile(path: string): boolean {
  if (!/\.(png|svg)$/i.test(path)) return false
  const file = statSync(path, { throwIfNoEntry: false })
  return file?.isFile() === true && file.size <= LOGO_BYTES_MAX
}

/** ipaddr.js also reads `10.1` as 10.0.0.1. */
function isAddressRange(text: string): boolean {
  if (!isIP(text.replace(/\/.*/, ''))) return false
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text)
}

/** A name, not a number that URLs read as an address. */
const isHostName = (text: string): boolean =>
  /^[\w.-]+$/.test(text) &&
  URL.parse(`http://${text}`)?.hostname === text.toLowerCase() &&
  isIP(text) === 0

/** Values of `sslmode` that Bun's client knows. */
const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Why the client of PostgreSQL would not accept the URL. Without the URL, which has a password. */
function findClusterUrlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length <= 1) {
    return 'must be postgres://user:password@host:port/database, with the signs @ / # ? % encoded'
  }
  if (decodePercent(text) === undefined) {
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

const LETS_ENCRYPT = 'https://acme-v02.api.letsencrypt.org/directory'
const STAGING = 'https://acme-staging-v02.api.letsencrypt.org/directory'

function isDirectory(text: string): boolean {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.username === '' && url.password === ''
}

/** Names that no public authority certifies. They are never sent to one. */
const NO_PUBLIC_NAME =
  /(^|\.)(localhost|local|internal|home\.arpa|lan|test|example|invalid|onion)$|^[^.]*$|\.\d+$/

/** The settings of sign-in with OpenID Connect. */

const PROVIDER_NAME_MAX = 40
const PROVIDER_TEXT_MAX = 1000

const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)

export function isIssuer(text: string): boolean {
  const url = URL.parse(text)
  if (url === null) return false
  const { protocol, hostname, search, hash, username, password } = url
  if (search + hash + username + password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

export const BAD_ISSUER = 'must be an https:// address without query, as the provider names itself'

/** One of two words. */
const either = <One extends string, Other extends string>(one: One, other: Other) =>
  z.enum([one, other], `must be ${one} or ${other}`)

/** `max`: characters. */
const shortText = (max: number) =>
  z.string().max(max, `must have at most ${max} characters`).optional()

const providerText = shortText(PROVIDER_TEXT_MAX)

const OIDC_SETTINGS = {
  OIDC_ISSUER: z
    .string()
    .refine(isIssuer, BAD_ISSUER)
    .optional()
    .describe('The provider that people sign in with (OpenID Connect): its issuer.'),
  OIDC_CLIENT_ID: providerText.describe('The name of this service at the provider.'),
  OIDC_CLIENT_SECRET: providerText.describe('The secret of this service at the provider.'),
  OIDC_CLIENT_SECRET_FILE: providerText.describe('File with that secret, in place of the setting.'),
  OIDC_NAME: shortText(PROVIDER_NAME_MAX).describe('The name of the provider on the sign-in page.'),
  OIDC_SCOPES: z
    .string()
    .default('openid email profile')
    .refine((scopes) => scopes.split(' ').includes('openid'), 'must contain openid')
    .describe('What the provider is asked for, separated by spaces.'),
  OIDC_SIGNUP: either('closed', 'open')
    .default('closed')
    .describe('With open, everybody with a verified address at the provider gets an account.'),
  OIDC_REQUIRE: z
    .string()
    .regex(/^[^=\s]+=.+$/, 'must be a claim and its value: groups=hopcode')
    .optional()
    .describe('A claim that must have or contain a value: hd=example.com, a.b=c in an object.'),
  OIDC_TRUST_EMAIL: either('off', 'on')
    .default('off')
    .describe('With on, a verified address at the provider connects the person who has it here.'),
  PASSWORD_SIGN_IN: either('on', 'owners')
    .default('on')
    .describe('With owners, only owners of the service sign in with a password.'),
}

const HTTPS_SETTINGS = {
  ACME_EMAIL: z
    .email('must be an e-mail address')
    .optional()
    .describe(
      'Serve https with a certificate of a certificate authority, which gets this address.',
    ),
  ACME_DIRECTORY: z
    .string()
    .transform((text) => (text === 'staging' ? STAGING : text))
    .refine(isDirectory, 'must be an https address or staging')
    .optional()
    .describe('The certificate authority (ACME): the URL of its directory, or staging.'),
  TLS_CERT_FILE: z
    .string()
    .optional()
    .describe('Serve https with this certificate: a PEM file, with its chain behind it.'),
  TLS_KEY_FILE: z.string().optional().describe('The private key of that certificate: a PEM file.'),
  HTTPS_PORT: wholeNumber(0, 65_535)
    .optional()
    .describe('Port for https, with ACME_EMAIL or TLS_CERT_FILE.'),
}

/** The longest base whose short URLs fit a QR code of 64 pixels at one pixel per module. */
const BASE_URL_MAX_LENGTH = 100

/** SQLite opens no path of more than 512 bytes, and ours are in folders below this one. */
const DATA_DIR_MAX_BYTES = 400

const BUDGET_MAX = 1_000_000
const HIT_FLUSH_MS = 250
/** Each flush is an entry of the log of a cluster, which all hosts apply. */
const SHARED_HIT_FLUSH_MS = 5000
const MIB = 1024 * 1024
/** Link ids have 32 bits. */
const LINKS_MAX = 2 ** 32 - 1
const URL_BYTES_MAX = Number.MAX_SAFE_INTEGER
const LOG_REQUESTS = ['none', 'api', 'all'] as const

const linksMax = (plan: string, fallback: number) =>
  wholeNumber(0, LINKS_MAX)
    .default(fallback)
    .describe(`Links that an account of the ${plan} plan stores. 0: no limit.`)

const urlBytesMax = (plan: string, fallback: number) =>
  wholeNumber(0, URL_BYTES_MAX)
    .default(fallback)
    .describe(`Bytes of URLs and texts that an account of the ${plan} plan stores. 0: no limit.`)

const REDIRECT_THREADS_MAX = 8

const PLAIN_PORT = 3000
const ALL_IPV4 = '0.0.0.0'
/** With https. A certificate authority asks the IPv6 address of a name first. */
const HTTPS_DEFAULTS = { port: 80, host: '::', httpsPort: 443 }

/** One core is left for the control thread. */
const defaultRedirectThreads = (): number =>
  Math.min(REDIRECT_THREADS_MAX, Math.max(1, availableParallelism() - 1))

const Environment = z.object({
  PORT: wholeNumber(0, 65_535)
    .optional()
    .describe('Port to listen on, without TLS. 0 chooses a free one and needs BASE_URL.'),
  HOST: z.string().optional().describe('Address to listen on.'),
  BASE_URL: Address.refine(
    (url) => new URL(url).pathname === '/',
    'must have no path: Hopcode serves its pages and short links at the root of a host',
  )
    .refine(
      (url) => url.length <= BASE_URL_MAX_LENGTH,
      `must have at most ${BASE_URL_MAX_LENGTH} characters`,
    )
    .optional()
    .describe('What short URLs begin with.'),
  ...HTTPS_SETTINGS,
  CDN_URL: Address.optional().describe('What the URLs of stored QR images begin with.'),
  DATA_DIR: z
    .string()
    .refine(
      (path) => Buffer.byteLength(resolve(path)) <= DATA_DIR_MAX_BYTES,
      `must be a path of at most ${DATA_DIR_MAX_BYTES} bytes`,
    )
    .default('./data')
    .describe('Folder for everything it writes: database, hit journal, secret key, QR images.'),
  ROOT_URL: PublicPage.optional().describe(
    'Where visitors of BASE_URL itself are redirected; without it, to the dashboard.',
  ),
  NOT_FOUND_URL: PublicPage.optional().describe(
    'Where a browser that opens an unknown short link is redirected; other clients get JSON.',
  ),
  OPERATOR_NAME: shortText(OPERATOR_NAME_MAX).describe(
    'Name of the operator of the service, on the pages for visitors.',
  ),
  OPERATOR_LOGO: z
    .string()
    .refine(isLogoFile, 'must be the path of a PNG or SVG file of at most 64 KiB')
    .optional()
    .describe('Logo on the pages for visitors: the path of a PNG or SVG file.'),
  OPERATOR_CONTACT: z
    .union(
      [z.email().transform((address) => `mailto:${address}`), WebAddress],
      'must be an e-mail address or an https:// URL',
    )
    .optional()
    .describe('Where to report security problems, in security.txt: an e-mail address or a URL.'),
  CAPTION_FONTS: list
    .refine((paths) => paths.every((path) => existsSync(path)), 'must name files or folders')
    .default(['/usr/share/fonts'])
    .describe('Fonts of captions and labels, behind the built-in Inter: files and folders.'),
  TRUSTED_PROXIES: list
    .refine((ranges) => ranges.every(isAddressRange), 'must be IP addresses or CIDR ranges')
    .default([])
    .describe('IP addresses and CIDR ranges of proxies whose X-Forwarded-For is trusted.'),
  CHECK_DESTINATIONS: either('off', 'on')
    .default('off')
    .describe('With on, destinations of links are checked once a week for whether they answer.'),
  OUTGOING_HOSTS: list
    .refine(
      (entries) => entries.every((entry) => isAddressRange(entry) || isHostName(entry)),
      'must be names, IP addresses or CIDR ranges',
    )
    .default([])
    .describe('Receivers in your own network that the service may send requests to.'),
  ANONYMOUS_READS_PER_MINUTE: wholeNumber(0, BUDGET_MAX)
    .default(300)
    .describe('Reads without an API key, unknown codes included, per address. 0: no limit.'),
  ANONYMOUS_REDIRECTS_PER_MINUTE: wholeNumber(0, BUDGET_MAX)
    .default(6000)
    .describe('Redirects of existing links, per address without an API key. 0: no limit.'),
  ENTERPRISE_WRITES_PER_MINUTE: wholeNumber(0, BUDGET_MAX)
    .default(6000)
    .describe('Write requests of an Enterprise account. 0: no limit.'),
  ENTERPRISE_READS_PER_MINUTE: wholeNumber(0, BUDGET_MAX)
    .default(30_000)
    .describe('Read requests of an Enterprise account. 0: no limit.'),
  ENTERPRISE_BULK_MAX: wholeNumber(1, 100_000)
    .default(5000)
    .describe('URLs in one bulk request of an Enterprise account.'),
  ALIASES: either('owners', 'all')
    .optional()
    .describe(
      'Accounts that can have paths that are no codes, such as spring-team: owners or all.',
    ),
  IMPORT_ALIASES: either('owners', 'all')
    .optional()
    .describe('The older name of ALIASES, which applies if both are set.'),
  DESTINATION_RULES: either('owners', 'all')
    .optional()
    .describe('Accounts that can add destinations by rule to their links: owners or all.'),
  DASHBOARD_REQUESTS_PER_MINUTE: wholeNumber(0, BUDGET_MAX)
    .default(600)
    .describe('Dashboard requests per account, or per address without a session. 0: no limit.'),
  FREE_LINKS_MAX: linksMax('Free', 100_000),
  FREE_URL_BYTES_MAX: urlBytesMax('Free', 32 * MIB),
  PRO_LINKS_MAX: linksMax('Pro', 1_000_000),
  PRO_URL_BYTES_MAX: urlBytesMax('Pro', 1024 * MIB),
  ENTERPRISE_LINKS_MAX: linksMax('Enterprise', 0),
  ENTERPRISE_URL_BYTES_MAX: urlBytesMax('Enterprise', 0),
  BLOCKLIST_FILES: list
    .default([])
    .describe('Files with lists of bad hosts, comma-separated; reloaded when they change.'),
  LINK_CACHE_MAX: wholeNumber(1, 10_000_000)
    .default(200_000)
    .describe('Links that each redirect thread keeps in memory, of 192 bytes each on average.'),
  REDIRECT_THREADS: wholeNumber(1, REDIRECT_THREADS_MAX)
    .optional()
    .describe('Threads that answer redirects.'),
  CLUSTER_URL: z
    .string()
    .superRefine((text, context) => {
      const message = findClusterUrlProblem(text)
      if (message) context.addIssue({ code: 'custom', message })
    })
    .optional()
    .describe('PostgreSQL database through which several hosts form one service.'),
  HOST_NAME: z
    .string()
    .regex(/^[\w.-]{1,100}$/, 'must be 1 to 100 letters, digits, dots, dashes or underscores')
    .optional()
    .describe('Name of this host in the list of the hosts of CLUSTER_URL.'),
  HIT_FLUSH_MS: wholeNumber(1, 60_000)
    .optional()
    .describe('How often hits move from the journal to the database, in milliseconds.'),
  VISIT_DETAILS: either('on', 'off')
    .default('on')
    .describe(
      'Whether referrer, country, device and bots of redirects, and unknown paths are counted.',
    ),
  COUNTRY_FILE: z
    .string()
    .optional()
    .describe('File with the countries of addresses: an .mmdb, or geoip of tor-geoipdb.'),
  COUNTRY_HEADER: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be the name of a header, such as CF-IPCountry')
    .optional()
    .describe('Header in which a trusted proxy sends the country of a visitor.'),
  COMPATIBLE_APIS: either('on', 'off')
    .default('on')
    .describe('Whether tools for YOURLS and Shlink can use this service in their place.'),
  LOG_REQUESTS: z
    .enum(LOG_REQUESTS, `must be one of ${LOG_REQUESTS.join(', ')}`)
    .default('none')
    .describe('Requests that get a line in the log: none, api (all except redirects) or all.'),
  METRICS_LISTEN: z
    .string()
    .transform(parseListen)
    .optional()
    .describe('A second address for metrics and probes, such as 127.0.0.1:9100.'),
  SIGNUP: either('closed', 'open')
    .default('closed')
    .describe('With open, anybody can create a Free account in the dashboard.'),
  SIGNUPS_PER_DAY: wholeNumber(1, 1_000_000)
    .default(500)
    .describe('Accounts that all people together can create per day with SIGNUP=open.'),
  SESSION_IDLE_MINUTES: wholeNumber(1, 7 * 24 * 60)
    .default(30)
    .describe('A dashboard session expires after this time without use, unless it is a long one.'),
  SESSION_MAX_HOURS: wholeNumber(1, 90 * 24)
    .default(12)
    .describe('A dashboard session expires after this time, unless it is a long one (30 days).'),
  ...OIDC_SETTINGS,
  HOPCODE_URL: Address.optional().describe(
    'The service that shorten, links and qr call; with a key, import and export too.',
  ),
  HOPCODE_API_KEY: z.string().optional().describe('The API key of these commands.'),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`)
    .default('info')
    .describe('Least important lines of the log: debug, info, warn, error or silent.'),
})

/** Defaults that depend on other settings. */
const COMPUTED: Readonly<Record<string, string>> = {
  PORT: `${PLAIN_PORT}, with https 80`,
  HOST: `${ALL_IPV4}, with https ::`,
  ACME_DIRECTORY: LETS_ENCRYPT,
  HTTPS_PORT: '443',
  BASE_URL: 'http://localhost:<PORT>',
  CDN_URL: '<BASE_URL>/cdn',
  HOST_NAME: 'the name of the machine',
  ALIASES: 'all, with SIGNUP=open owners',
  DESTINATION_RULES: 'all, with SIGNUP=open owners',
  OIDC_NAME: 'the host of OIDC_ISSUER',
  HOPCODE_URL: 'the service that uses DATA_DIR, else BASE_URL',
  REDIRECT_THREADS: 'the number of cores less one, 1 to 8',
  HIT_FLUSH_MS: `${HIT_FLUSH_MS}, with CLUSTER_URL ${SHARED_HIT_FLUSH_MS}`,
}

/** Settings whose values are secrets. A URL with a typing error may still have its password. */
const SECRETS = new Set(['HOPCODE_API_KEY', 'CLUSTER_URL', 'OIDC_CLIENT_SECRET'])
const SHOWN_MAX = 200

/**
 * The value of a setting for a person, on one line of bounded length: without what stands before
 * an @ or in a query string, which may be a password or a token.
 */
function shownValue(text: string): string {
  const open = text.replace(/^.*@/s, '…@').replace(/\?.*$/s, '?…')
  const line = open.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '\u{fffd}')
  return line.length > SHOWN_MAX ? `${line.slice(0, SHOWN_MAX)}…` : line
}

function activeValue(name: string, text: string): string {
  if (name !== 'CLUSTER_URL') return SECRETS.has(name) ? 'set, not shown' : shownValue(text)
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//…@${host}${pathname}`
}

type Present = Readonly<Record<string, string | undefined>>

const activeSettings = (present: Present) =>
  listSettings().map(({ name, fallback, meaning }) => {
    const text = present[name]
    const isSet = text !== undefined
    const value = isSet ? activeValue(name, text) : fallback
    return { name, meaning, isSet, value, isShortened: isSet && value !== text }
  })

function badSettings(issues: readonly z.core.$ZodIssue[], present: Present): ConfigError {
  const lines = issues.map(({ path, message }) => {
    const name = path.join('.')
    const given = SECRETS.has(name) ? '' : ` (it is “${shownValue(present[name] ?? '')}”)`
    return `${name} ${message}${given}`
  })
  return new ConfigError(`Bad setting: ${lines.join('; ')}`)
}

/** Every setting with its default as text, for `hopcode help settings`. */
export function listSettings() {
  const defaults: Record<string, unknown> = Environment.parse({})
  return Object.entries(Environment.shape).map(([name, { description = '' }]) => {
    const fallback = COMPUTED[name] ?? (String(defaults[name] ?? '') || 'none')
    return { name, fallback, meaning: description }
  })
}

export interface Quota {
  linksMax: number
  /** UTF-8 bytes of all stored URLs and texts. */
  urlBytesMax: number
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
  if (!parsed.success) throw badSettings(parsed.error.issues, present)
  const env = parsed.data
  // Who may have what concerns the whole domain, or costs each visit.
  const trusted = env.SIGNUP === 'open' ? 'owners' : 'all'
  const listening = inSettings(() => listeningOf(env))
  const baseUrl = env.BASE_URL ?? `http://localhost:${listening.port}`
  const signIn = signInProvider(env)
  refuseLoops(env, baseUrl)
  return {
    ...listening,
    // Neither address has a slash at its end.
    baseUrl,
    cdnUrl: env.CDN_URL ?? `${baseUrl}/cdn`,
    dataDir: resolve(env.DATA_DIR),
    rootUrl: env.ROOT_URL,
    notFoundUrl: env.NOT_FOUND_URL,
    operatorName: env.OPERATOR_NAME,
    operatorLogo: env.OPERATOR_LOGO,
    operatorContact: env.OPERATOR_CONTACT,
    trustedProxies: env.TRUSTED_PROXIES,
    // The spec's chapter "Limits": requests in any 60 seconds. 0 means no limit.
    plans: {
      free: {
        write: 60,
        read: 300,
        bulkMax: 100,
        linksMax: env.FREE_LINKS_MAX,
        urlBytesMax: env.FREE_URL_BYTES_MAX,
      },
      pro: {
        write: 600,
        read: 3000,
        bulkMax: 1000,
        linksMax: env.PRO_LINKS_MAX,
        urlBytesMax: env.PRO_URL_BYTES_MAX,
      },
      enterprise: {
        write: env.ENTERPRISE_WRITES_PER_MINUTE,
        read: env.ENTERPRISE_READS_PER_MINUTE,
        bulkMax: env.ENTERPRISE_BULK_MAX,
        linksMax: env.ENTERPRISE_LINKS_MAX,
        urlBytesMax: env.ENTERPRISE_URL_BYTES_MAX,
      },
    },
    // For an address without a valid key. Its writes are charged, and refused with 401.
    anonymous: {
      write: 60,
      read: env.ANONYMOUS_READS_PER_MINUTE,
      redirect: env.ANONYMOUS_REDIRECTS_PER_MINUTE,
    },
    aliases: env.ALIASES ?? env.IMPORT_ALIASES ?? trusted,
    destinationRules: env.DESTINATION_RULES ?? trusted,
    dashboardRequestsPerMinute: env.DASHBOARD_REQUESTS_PER_MINUTE,
    ...independent(env),
    linkCacheMax: env.LINK_CACHE_MAX,
    redirectThreads: env.REDIRECT_THREADS ?? defaultRedirectThreads(),
    clusterUrl: env.CLUSTER_URL,
    hostName: env.HOST_NAME ?? hostname(),
    hitFlushMs: env.HIT_FLUSH_MS ?? (env.CLUSTER_URL ? SHARED_HIT_FLUSH_MS : HIT_FLUSH_MS),
    visitDetails: env.VISIT_DETAILS === 'on',
    countryFile: env.COUNTRY_FILE,
    countryHeader: env.COUNTRY_HEADER,
    compatibleApis: env.COMPATIBLE_APIS === 'on',
    signUp: env.SIGNUP,
    ...signIn,
    signUpsPerDay: env.SIGNUPS_PER_DAY,
    sessionIdleMinutes: env.SESSION_IDLE_MINUTES,
    sessionMaxHours: env.SESSION_MAX_HOURS,
    logLevel: env.LOG_LEVEL,
    logRequests: env.LOG_REQUESTS,
    metricsListen: env.METRICS_LISTEN,
    /** Every setting with its active value as text, for a person, without secrets. */
    settings: activeSettings(present),
    // For commands that call a service on any machine.
    remote: { url: env.HOPCODE_URL, apiKey: env.HOPCODE_API_KEY },
    // Whether the public address shows metrics to callers on this machine. Behind a proxy, where
    // TLS ends too, every caller may look like one.
    localMetrics:
      !env.METRICS_LISTEN && !baseUrl.startsWith('https:') && env.TRUSTED_PROXIES.length === 0,
  }
}

/** Some that depend on no other setting. */
const independent = (env: z.output<typeof Environment>) => ({
  captionFonts: env.CAPTION_FONTS.map((path) => resolve(path)),
  blocklistFiles: env.BLOCKLIST_FILES.map((file) => resolve(file)),
  checkDestinations: env.CHECK_DESTINATIONS === 'on',
  outgoingHosts: env.OUTGOING_HOSTS,
})

function signInProvider(env: z.output<typeof Environment>) {
  if (env.PASSWORD_SIGN_IN === 'owners' && env.SIGNUP === 'open') {
    throw new ConfigError('Bad setting: SIGNUP must be closed with PASSWORD_SIGN_IN=owners')
  }
  return { oidc: inSettings(() => oidcOf(env)), passwordSignIn: env.PASSWORD_SIGN_IN }
}

/** `read` throws an error whose message begins with the name of the setting that is wrong. */
function inSettings<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw new ConfigError(`Bad setting: ${(error as Error).message}`)
  }
}

export interface AcmeSettings {
  email: string
  directory: string
  /** The authority certifies names of the public DNS only. */
  isPublic: boolean
}

export interface HttpsSettings {
  port: number
  /** Where the certificate comes from: an authority, or files of the operator. */
  acme: AcmeSettings | undefined
  files: { certificate: string; key: string } | undefined
}

/** Where it listens. Throws an error as `inSettings` describes it. */
function listeningOf(env: z.output<typeof Environment>) {
  if (env.PORT === 0 && env.BASE_URL === undefined) {
    throw new Error('PORT must not be 0 without BASE_URL')
  }
  const https = httpsOf(env)
  const port = env.PORT ?? (https ? HTTPS_DEFAULTS.port : PLAIN_PORT)
  if (https?.port === port && port !== 0) {
    throw new Error('HTTPS_PORT must not be PORT, which is without TLS')
  }
  return { port, host: env.HOST ?? (https ? HTTPS_DEFAULTS.host : ALL_IPV4), https }
}

/** Undefined without https. Throws an error as `inSettings` describes it. */
function httpsOf(env: z.output<typeof Environment>): HttpsSettings | undefined {
  const { ACME_EMAIL: email, TLS_CERT_FILE: certificate, TLS_KEY_FILE: key } = env
  if (email && (certificate || key)) {
    throw new Error(
      `${certificate ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE'} must not be set with ACME_EMAIL`,
    )
  }
  if (certificate && !key) throw new Error('TLS_KEY_FILE is missing: TLS_CERT_FILE needs it')
  if (key && !certificate) throw new Error('TLS_CERT_FILE is missing: TLS_KEY_FILE needs it')
  if (env.ACME_DIRECTORY && !email) throw new Error('ACME_DIRECTORY needs ACME_EMAIL')
  const source = email ? 'ACME_EMAIL' : 'TLS_CERT_FILE'
  if (!email && !certificate) {
    if (env.HTTPS_PORT !== undefined)
      throw new Error('HTTPS_PORT needs ACME_EMAIL or TLS_CERT_FILE')
    return undefined
  }
  if (!env.BASE_URL?.startsWith('https://')) {
    throw new Error(`BASE_URL must begin with https:// with ${source}`)
  }
  const port = env.HTTPS_PORT ?? HTTPS_DEFAULTS.httpsPort
  if (!email) {
    return { port, acme: undefined, files: { certificate: certificate ?? '', key: key ?? '' } }
  }
  if (env.CLUSTER_URL) {
    // The authority may ask any of the hosts.
    throw new Error(
      'ACME_EMAIL must not be set with CLUSTER_URL: use TLS_CERT_FILE, or a load balancer',
    )
  }
  const directory = env.ACME_DIRECTORY ?? LETS_ENCRYPT
  const acme = { email, directory, isPublic: [LETS_ENCRYPT, STAGING].includes(directory) }
  const { hostname } = new URL(env.BASE_URL)
  if (!mayBeCertified(acme, hostname)) {
    throw new Error(
      `no public certificate exists for ${hostname}: use TLS_CERT_FILE, or ACME_DIRECTORY of ` +
        'your own CA',
    )
  }
  return { port, acme, files: undefined }
}

/** Whether the authority may be asked for a certificate of the host. */
export const mayBeCertified = ({ isPublic }: AcmeSettings, host: string): boolean =>
  !isPublic || !(NO_PUBLIC_NAME.test(host) || host.includes(':'))

export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
  name: string
  scopes: string
  signUp: 'closed' | 'open'
  /** A claim and the value that it must have, or contain. */
  require: { claim: string; value: string } | undefined
  trustsEmail: boolean
}

/**
 * Undefined without a provider. Throws an error whose message begins with the name of the setting
 * that is missing or wrong.
 */
function oidcOf(env: z.output<typeof Environment>): OidcSettings | undefined {
  const {
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: clientId,
    OIDC_CLIENT_SECRET: secret,
    OIDC_CLIENT_SECRET_FILE: file,
  } = env
  if (secret && file) {
    throw new Error('OIDC_CLIENT_SECRET must not be set with OIDC_CLIENT_SECRET_FILE')
  }
  const others = [clientId, secret, file, env.OIDC_NAME, env.OIDC_REQUIRE]
  const isUsed = env.PASSWORD_SIGN_IN === 'owners' || others.some((value) => value !== undefined)
  if (!issuer) {
    if (isUsed) throw new Error('OIDC_ISSUER is missing: other settings of sign-in need it')
    return undefined
  }
  if (!clientId) throw new Error('OIDC_CLIENT_ID is missing: OIDC_ISSUER needs it')
  const clientSecret = secret ?? (file && secretIn(file))
  if (!clientSecret) throw new Error('OIDC_CLIENT_SECRET is missing: OIDC_ISSUER needs it')
  const [, claim = '', value = ''] = /^([^=]+)=(.+)$/.exec(env.OIDC_REQUIRE ?? '') ?? []
  return {
    issuer,
    clientId,
    clientSecret,
    name: env.OIDC_NAME ?? new URL(issuer).host,
    scopes: env.OIDC_SCOPES,
    signUp: env.OIDC_SIGNUP,
    require: claim === '' ? undefined : { claim, value },
    trustsEmail: env.OIDC_TRUST_EMAIL === 'on',
  }
}

function secretIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'error'
    throw new Error(`OIDC_CLIENT_SECRET_FILE cannot be read (${reason})`)
  }
}

const refuseLoops = (env: z.output<typeof Environment>, baseUrl: string): void => {
  for (const name of ['ROOT_URL', 'NOT_FOUND_URL'] as const) refuseLoop(name, env[name], baseUrl)
}

/** Throws ConfigError for a page that redirects to itself: the root, or an unknown short link. */
function refuseLoop(name: string, page: string | undefined, baseUrl: string): void {
  if (page === undefined) return
  const { host, pathname } = new URL(page)
  if (host !== new URL(baseUrl).host || !/^\/[^/]*\/?$/.test(pathname)) return
  if (/^\/(app|docs)\/?$/.test(pathname)) return
  throw new ConfigError(
    `Bad setting: ${name} must be a page of another host, or /app or /docs of this one`,
  )
}

/** `127.0.0.1:9100`, `[::1]:9100` or `localhost:9100`. */
function parseListen(text: string, context: z.RefinementCtx) {
  const [, bracketed, plain, digits] =
    /^(?:\[([\da-f:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/i.exec(text) ?? []
  const port = Number(digits)
  if (!(port <= 65_535)) {
    context.addIssue({ code: 'custom', message: 'must be an address and a port: 127.0.0.1:9100' })
  }
  return { host: bracketed ?? plain ?? '', port }
}
