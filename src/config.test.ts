import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/folder.ts'
import { ConfigError, listSettings, readConfig } from './config.ts'
import { urlHost } from './lib/local-address.ts'

test('every setting has its documented default', () => {
  const { settings, ...config } = readConfig({})
  expect(settings.some(({ isSet }) => isSet)).toBe(false)
  expect(config).toEqual({
    port: 3000,
    host: '0.0.0.0',
    https: undefined,
    baseUrl: 'http://localhost:3000',
    cdnUrl: 'http://localhost:3000/cdn',
    dataDir: `${process.cwd()}/data`,
    captionFonts: ['/usr/share/fonts'],
    trustedProxies: [],
    checkDestinations: false,
    outgoingHosts: [],
    anonymous: { write: 60, read: 300, redirect: 6000 },
    aliases: 'all',
    destinationRules: 'all',
    dashboardRequestsPerMinute: 600,
    plans: {
      free: {
        write: 60,
        read: 300,
        bulkMax: 100,
        linksMax: 100_000,
        urlBytesMax: 32 * 1024 * 1024,
      },
      pro: {
        write: 600,
        read: 3000,
        bulkMax: 1000,
        linksMax: 1_000_000,
        urlBytesMax: 1024 * 1024 * 1024,
      },
      enterprise: { write: 6000, read: 30_000, bulkMax: 5000, linksMax: 0, urlBytesMax: 0 },
    },
    blocklistFiles: [],
    linkCacheMax: 200_000,
    redirectThreads: Math.min(8, Math.max(1, availableParallelism() - 1)),
    clusterUrl: undefined,
    hostName: hostname(),
    hitFlushMs: 250,
    visitDetails: true,
    countryFile: undefined,
    countryHeader: undefined,
    compatibleApis: true,
    signUp: 'closed',
    signUpsPerDay: 500,
    sessionIdleMinutes: 30,
    sessionMaxHours: 12,
    logLevel: 'info',
    logRequests: 'none',
    metricsListen: undefined,
    localMetrics: true,
    remote: { url: undefined, apiKey: undefined },
    rootUrl: undefined,
    notFoundUrl: undefined,
    operatorName: undefined,
    operatorLogo: undefined,
    operatorContact: undefined,
    oidc: undefined,
    passwordSignIn: 'on',
  })
})

test('BASE_URL follows PORT, CDN_URL follows BASE_URL, and last slashes go', () => {
  expect(readConfig({ PORT: '8080' }).cdnUrl).toBe('http://localhost:8080/cdn')
  const config = readConfig({ BASE_URL: 'https://hop.example/', CDN_URL: 'https://cdn.example/x/' })
  expect(config).toMatchObject({ baseUrl: 'https://hop.example', cdnUrl: 'https://cdn.example/x' })
})

function messageFor(env: Record<string, string>): string {
  try {
    readConfig(env)
  } catch (error) {
    return (error as Error).message
  }
  return ''
}

const bad: Record<string, string>[] = [
  { PORT: '0x10' },
  { PORT: '65536' },
  { PORT: '-1' },
  { PORT: '3000 ' },
  { PORT: '0' },
  { BASE_URL: 'ftp://hop.example' },
  { BASE_URL: 'hop.example' },
  { BASE_URL: 'https://hop.example/?a=1' },
  { BASE_URL: 'https://user:pass@hop.example' },
  { BASE_URL: `https://${'x'.repeat(90)}.hop.example` },
  { BASE_URL: 'https://hop.example/s' },
  { BASE_URL: 'https://hop.example/s/' },
  { BASE_URL: 'https://hop.example/%20' },
  { CDN_URL: 'javascript:alert(1)' },
  { TRUSTED_PROXIES: '10.0.0.0/8,nonsense' },
  { TRUSTED_PROXIES: '10.0.0.0/33' },
  { TRUSTED_PROXIES: '10.1' },
  { TRUSTED_PROXIES: '10/8' },
  { TRUSTED_PROXIES: '010.0.0.1' },
  { TRUSTED_PROXIES: ', ,' },
  { OUTGOING_HOSTS: '10.0.0.0/33' },
  { OUTGOING_HOSTS: '10.1' },
  { OUTGOING_HOSTS: '0x7f.1' },
  { OUTGOING_HOSTS: 'n8n.internal:8080' },
  { OUTGOING_HOSTS: 'https://n8n.internal' },
  { OUTGOING_HOSTS: '*.internal' },
  { CHECK_DESTINATIONS: 'yes' },
  { BLOCKLIST_FILES: ',' },
  { DATA_DIR: `/srv/${'a/'.repeat(250)}` },
  { ANONYMOUS_READS_PER_MINUTE: '1.5' },
  { ANONYMOUS_REDIRECTS_PER_MINUTE: '1000001' },
  { ENTERPRISE_BULK_MAX: '0' },
  { ALIASES: 'some' },
  { IMPORT_ALIASES: 'some' },
  { HIT_FLUSH_MS: '0' },
  { FREE_LINKS_MAX: '-1' },
  { PRO_URL_BYTES_MAX: '1 GiB' },
  { LOG_LEVEL: 'loud' },
  { LOG_REQUESTS: 'some' },
  { CLUSTER_URL: 'db.internal:5432' },
  { CLUSTER_URL: 'postgres://hopcode:pass/word@db.internal/hopcode' },
  { CLUSTER_URL: 'postgres://hopcode:pass#word@db.internal/hopcode' },
  { CLUSTER_URL: 'postgres://hopcode:100%sure@db.internal/hopcode' },
  { CLUSTER_URL: 'postgres://hopcode:secret@db.internal/hopcode?sslmode=verify-ful' },
  { CLUSTER_URL: 'postgres://hopcode:secret@db.internal/hopcode?sslrootcert=/absent.pem' },
  { HOST_NAME: 'host a' },
  { METRICS_LISTEN: '9100' },
  { METRICS_LISTEN: '127.0.0.1:65536' },
  { METRICS_LISTEN: '::1:9100' },
  { METRICS_LISTEN: 'http://127.0.0.1:9100' },
  { ROOT_URL: 'example.com' },
  { ROOT_URL: 'javascript:alert(1)' },
  { ROOT_URL: 'https://user:pass@example.com/' },
  { ROOT_URL: `https://example.com/${'x'.repeat(2048)}` },
  { ROOT_URL: 'http://localhost:3000' },
  { NOT_FOUND_URL: 'ftp://example.com' },
  { OPERATOR_NAME: 'x'.repeat(61) },
  { OPERATOR_LOGO: '/no/such/logo.svg' },
  { CAPTION_FONTS: '/usr,/no/such/folder' },
  { OPERATOR_LOGO: '/etc/hostname' },
  { NOT_FOUND_URL: 'http://localhost:3000/' },
  { NOT_FOUND_URL: 'http://localhost:3000/SPRING26' },
  { NOT_FOUND_URL: 'http://localhost:3000/%53PRING26/?a=b' },
  { NOT_FOUND_URL: 'https://LOCALHOST:3000/sorry' },
]
test.each(bad)('a bad setting ends the start with one line that names it: %j', (environment) => {
  const [name] = Object.keys(environment)
  try {
    readConfig(environment)
    expect.unreachable()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as Error).message).toStartWith(`Bad setting: ${name} must`)
    expect((error as Error).message).not.toContain('\n')
    expect((error as Error).message).not.toMatch(/secret|sure|pass[/#]/)
  }
})

const PROVIDER = {
  OIDC_ISSUER: 'https://id.example/realms/main/',
  OIDC_CLIENT_ID: 'hopcode',
  OIDC_CLIENT_SECRET: 'sure secret',
}

test.each([
  [{ OIDC_CLIENT_ID: undefined }, 'OIDC_CLIENT_ID is missing'],
  [{ OIDC_CLIENT_SECRET: undefined }, 'OIDC_CLIENT_SECRET is missing'],
  [{ OIDC_ISSUER: undefined }, 'OIDC_ISSUER is missing'],
  [{ OIDC_CLIENT_SECRET_FILE: '/none' }, 'OIDC_CLIENT_SECRET must not be set with'],
  [
    { OIDC_CLIENT_SECRET: undefined, OIDC_CLIENT_SECRET_FILE: '/none' },
    'OIDC_CLIENT_SECRET_FILE cannot be read',
  ],
  [{ OIDC_ISSUER: 'http://id.example' }, 'OIDC_ISSUER must be an https://'],
  [{ OIDC_ISSUER: 'https://id.example/?x' }, 'OIDC_ISSUER must be an https://'],
  [{ OIDC_SCOPES: 'email' }, 'OIDC_SCOPES must contain openid'],
  [{ OIDC_REQUIRE: 'groups' }, 'OIDC_REQUIRE must be a claim and its value'],
  [{ PASSWORD_SIGN_IN: 'owners', SIGNUP: 'open' }, 'SIGNUP must be closed'],
])('a provider with %j ends the start', (change, message) => {
  const run = () => readConfig({ ...PROVIDER, ...change })
  expect(run).toThrow(`Bad setting: ${message}`)
  expect(run).not.toThrow('sure')
})

test('a provider with its defaults, and a secret in a file', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'secret')
  writeFileSync(file, 'sure secret\n')
  const { OIDC_CLIENT_SECRET: secret, ...named } = PROVIDER
  const expected = {
    issuer: PROVIDER.OIDC_ISSUER,
    clientId: 'hopcode',
    clientSecret: secret,
    name: 'id.example',
    scopes: 'openid email profile',
    signUp: 'closed',
    require: undefined,
    trustsEmail: false,
  } as const
  const fromFile = readConfig({ ...named, OIDC_CLIENT_SECRET_FILE: file })
  expect([readConfig(PROVIDER).oidc, fromFile.oidc]).toEqual([expected, expected])
  expect(JSON.stringify(readConfig(PROVIDER).settings)).not.toContain('sure')
  expect(readConfig({ ...PROVIDER, OIDC_REQUIRE: 'groups=a=b' }).oidc?.require).toEqual({
    claim: 'groups',
    value: 'a=b',
  })
})

test.each([
  ['127.0.0.1:9100', '127.0.0.1', 9100],
  ['[::1]:9100', '::1', 9100],
  ['localhost:0', 'localhost', 0],
])('METRICS_LISTEN %s is a host and a port', (text, host, port) => {
  expect(readConfig({ METRICS_LISTEN: text }).metricsListen).toEqual({ host, port })
})

test.each([
  [{ BASE_URL: 'https://hop.example' }, false],
  [{ TRUSTED_PROXIES: '127.0.0.1' }, false],
  [{ METRICS_LISTEN: '127.0.0.1:9100' }, false],
  [{ BASE_URL: 'http://hop.example' }, true],
])('with %j alone, the public address shows metrics to this machine: %j', (env, shown) => {
  expect(readConfig(env).localMetrics).toBe(shown)
})

test('with BASE_URL the port may be any that is free', () => {
  expect(readConfig({ PORT: '0', BASE_URL: 'https://hop.example' }).port).toBe(0)
})

test('ROOT_URL and NOT_FOUND_URL accept pages elsewhere, and pages of our own that redirect nowhere', () => {
  const env = {
    ROOT_URL: 'http://localhost:3000/docs',
    NOT_FOUND_URL: 'https://example.com/ö?a=b#c',
  }
  expect(readConfig(env)).toMatchObject({
    rootUrl: 'http://localhost:3000/docs',
    notFoundUrl: 'https://example.com/%C3%B6?a=b#c',
  })
})

test('each setting is listed with its default and its meaning, and the page of settings has the same', () => {
  const settings = listSettings()
  const page = readFileSync(join(import.meta.dir, '../docs/settings.md'), 'utf8')
  const rows = [...page.matchAll(/^\| (`.*?`) \| (.*?) \| /gm)]
  const defaultsOf = new Map(
    rows.flatMap(([, names = '', defaults = '']) =>
      names.split(', ').map((name) => [name.replaceAll('`', ''), defaults.replaceAll('`', '')]),
    ),
  )
  expect([...defaultsOf.keys()].sort()).toEqual(settings.map(({ name }) => name).sort())
  for (const { name, meaning, fallback } of settings) {
    expect({ name, meaning: meaning.length > 10 }).toEqual({ name, meaning: true })
    expect({ name, defaults: defaultsOf.get(name) ?? '' }).toEqual({
      name,
      defaults: expect.stringContaining(fallback),
    })
  }
  const shown = new Map(settings.map(({ name, fallback }) => [name, fallback]))
  expect(shown.get('PORT')).toBe('3000, with https 80')
  expect(shown.get('BASE_URL')).toBe('http://localhost:<PORT>')
  expect(shown.get('TRUSTED_PROXIES')).toBe('none')
  expect(shown.get('METRICS_LISTEN')).toBe('none')
})

test('a bad setting is reported with the value that it has, on one line, and secrets are not', () => {
  expect(messageFor({ PORT: '80a' })).toEndWith('from 0 to 65535 (it is “80a”)')
  expect(messageFor({ LOG_LEVEL: 'loud' })).toContain('“loud”')
  expect(messageFor({ PORT: '1\n2\u001b[31m' })).not.toMatch(/\p{Cc}/u)
  expect(messageFor({ PORT: 'x'.repeat(5000) }).length).toBeLessThan(400)
  const secrets = [
    { BASE_URL: 'http://user:s3cret@hop.example' },
    { BASE_URL: 'http:/user:s3cret@hop.example' },
    { ROOT_URL: 'ftp://hop.example/?token=s3cret' },
    { CLUSTER_URL: 'postgresq://user:s3cret' },
    { CLUSTER_URL: 'user:s3cret@host/db' },
    { CLUSTER_URL: 'postgres://user:s3%cret@host/db' },
  ]
  for (const env of secrets) {
    expect(messageFor(env)).toStartWith('Bad setting: ')
    expect(messageFor(env)).not.toMatch(/s3/)
  }
})

test('the active settings are listed without secrets', () => {
  const { settings } = readConfig({
    PORT: '8080',
    CLUSTER_URL: 'postgres://hop:s3cret@db.example:5432/hop?sslmode=require&password=s3cret',
    HOPCODE_API_KEY: 'hop_s3cret',
    NOT_FOUND_URL: 'https://example.com/?token=s3cret',
  })
  const shown = Object.fromEntries(settings.map(({ name, value }) => [name, value]))
  expect(shown).toMatchObject({
    PORT: '8080',
    HOST: '0.0.0.0, with https ::',
    CLUSTER_URL: 'postgres://…@db.example:5432/hop',
    HOPCODE_API_KEY: 'set, not shown',
  })
  expect(JSON.stringify(settings)).not.toContain('s3cret')
  expect(settings.filter(({ isSet }) => isSet).map(({ name }) => name)).toHaveLength(4)
})

test('a budget of 0 is accepted: it means no limit', () => {
  expect(readConfig({ ANONYMOUS_READS_PER_MINUTE: '0' }).anonymous.read).toBe(0)
  const redirects = readConfig({ ANONYMOUS_REDIRECTS_PER_MINUTE: '0' })
  expect(redirects.anonymous.redirect).toBe(0)
})

test('an IPv6 address stands in brackets in a URL', () => {
  expect(['::1', '0.0.0.0', 'localhost'].map(urlHost)).toEqual(['[::1]', '0.0.0.0', 'localhost'])
})

test('a host of a cluster flushes hits less often, unless HIT_FLUSH_MS is set', () => {
  const CLUSTER_URL = 'postgres://db.internal/hopcode'
  expect(readConfig({ CLUSTER_URL }).hitFlushMs).toBe(5000)
  expect(readConfig({ CLUSTER_URL, HIT_FLUSH_MS: '20' }).hitFlushMs).toBe(20)
})

const ACME = { ACME_EMAIL: 'me@example.org', BASE_URL: 'https://go.example.org' }
const FILES = {
  TLS_CERT_FILE: '/tls/cert.pem',
  TLS_KEY_FILE: '/tls/key.pem',
  BASE_URL: 'https://go.example',
}

test('https has ports and an address of its own, and a certificate authority', () => {
  expect(readConfig(ACME)).toMatchObject({
    port: 80,
    host: '::',
    baseUrl: 'https://go.example.org',
    https: {
      port: 443,
      acme: {
        email: 'me@example.org',
        directory: 'https://acme-v02.api.letsencrypt.org/directory',
        isPublic: true,
      },
    },
  })
  const mapped = { ...FILES, PORT: '8080', HTTPS_PORT: '8443', HOST: '127.0.0.1' }
  expect(readConfig(mapped)).toMatchObject({
    port: 8080,
    host: '127.0.0.1',
    https: {
      port: 8443,
      files: { certificate: '/tls/cert.pem', key: '/tls/key.pem' },
    },
  })
  expect(readConfig({ ...ACME, ACME_DIRECTORY: 'staging' }).https?.acme).toMatchObject({
    directory: 'https://acme-staging-v02.api.letsencrypt.org/directory',
    isPublic: true,
  })
  const own = {
    ...ACME,
    ACME_DIRECTORY: 'https://ca.internal/acme',
    BASE_URL: 'https://go.internal',
  }
  expect(readConfig(own).https?.acme?.isPublic).toBe(false)
})

const refusedHttps: { env: Record<string, string>; names: RegExp }[] = [
  { env: { ...ACME, ACME_EMAIL: 'me' }, names: /^ACME_EMAIL / },
  { env: { ...ACME, BASE_URL: 'http://go.example.org' }, names: /^BASE_URL .*ACME_EMAIL$/ },
  { env: { ACME_EMAIL: 'me@example.org' }, names: /^BASE_URL .*ACME_EMAIL$/ },
  { env: { ...ACME, ACME_DIRECTORY: 'http://ca.example/dir' }, names: /^ACME_DIRECTORY / },
  { env: { ...ACME, ACME_DIRECTORY: 'production' }, names: /^ACME_DIRECTORY / },
  { env: { ACME_DIRECTORY: 'staging' }, names: /^ACME_DIRECTORY .*ACME_EMAIL$/ },
  {
    env: { ...ACME, TLS_CERT_FILE: '/a', TLS_KEY_FILE: '/b' },
    names: /^TLS_CERT_FILE .*ACME_EMAIL$/,
  },
  { env: { ...FILES, TLS_KEY_FILE: '' }, names: /^TLS_KEY_FILE .*TLS_CERT_FILE/ },
  { env: { ...FILES, TLS_CERT_FILE: '' }, names: /^TLS_CERT_FILE .*TLS_KEY_FILE/ },
  { env: { ...FILES, BASE_URL: 'http://go.example' }, names: /^BASE_URL .*TLS_CERT_FILE$/ },
  { env: { HTTPS_PORT: '8443' }, names: /^HTTPS_PORT needs ACME_EMAIL or TLS_CERT_FILE$/ },
  { env: { ...FILES, HTTPS_PORT: '80' }, names: /^HTTPS_PORT .*PORT/ },
  {
    env: { ...ACME, CLUSTER_URL: 'postgres://a:b@db.internal/hopcode' },
    names: /^ACME_EMAIL .*CLUSTER_URL/,
  },
  ...[
    'https://go.internal',
    'https://localhost',
    'https://go.localhost',
    'https://go.test',
    'https://go.home.arpa',
    'https://go.example',
    'https://hop',
    'https://192.0.2.1',
    'https://[2001:db8::1]',
  ].map((url) => ({
    env: { ...ACME, BASE_URL: url },
    names: /^no public certificate exists for /,
  })),
]
test.each(refusedHttps)('$env is refused for https', ({ env, names }) => {
  const [, reason = ''] = /^Bad setting: (.*)$/.exec(messageFor(env)) ?? []
  expect(reason).toMatch(names)
})
