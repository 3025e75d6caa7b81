import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** The settings of sign-in with OpenID Connect. */

const NAME_MAX = 40
const TEXT_MAX = 1000

const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)

export function isIssuer(text: string): boolean {
  const url = URL.parse(text)
  if (url === null) return false
  const { protocol, hostname, search, hash, username, password } = url
  if (search + hash + username + password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

export const BAD_ISSUER = 'must be an https:// address without query, as the provider names itself'

const text = z.string().max(TEXT_MAX, `must have at most ${TEXT_MAX} characters`).optional()

export const OIDC_SETTINGS = {
  OIDC_ISSUER: z
    .string()
    .refine(isIssuer, BAD_ISSUER)
    .optional()
    .describe('The provider that people sign in with (OpenID Connect): its issuer.'),
  OIDC_CLIENT_ID: text.describe('The name of this service at the provider.'),
  OIDC_CLIENT_SECRET: text.describe('The secret of this service at the provider.'),
  OIDC_CLIENT_SECRET_FILE: text.describe('File with that secret, in place of the setting.'),
  OIDC_NAME: z
    .string()
    .max(NAME_MAX, `must have at most ${NAME_MAX} characters`)
    .optional()
    .describe('The name of the provider on the sign-in page.'),
  OIDC_SCOPES: z
    .string()
    .default('openid email profile')
    .refine((scopes) => scopes.split(' ').includes('openid'), 'must contain openid')
    .describe('What the provider is asked for, separated by spaces.'),
  OIDC_SIGNUP: z
    .enum(['closed', 'open'], 'must be closed or open')
    .default('closed')
    .describe('With open, everybody with a verified address at the provider gets an account.'),
  OIDC_REQUIRE: z
    .string()
    .regex(/^[^=\s]+=.+$/, 'must be a claim and its value: groups=hopcode')
    .optional()
    .describe('A claim that must have or contain a value: hd=example.com, a.b=c in an object.'),
  OIDC_TRUST_EMAIL: z
    .enum(['off', 'on'], 'must be off or on')
    .default('off')
    .describe('With on, a verified address at the provider connects the person who has it here.'),
  PASSWORD_SIGN_IN: z
    .enum(['on', 'owners'], 'must be on or owners')
    .default('on')
    .describe('With owners, only owners of the service sign in with a password.'),
}

type Values = Readonly<z.output<z.ZodObject<typeof OIDC_SETTINGS>>>

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
export function oidcOf(env: Values): OidcSettings | undefined {
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
