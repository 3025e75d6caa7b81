import { FLOW_LIFE_SECONDS } from '../../accounts/oidc.ts'
import { findTimeZone } from '../../hits/range.ts'

const YEAR_SECONDS = 365 * 24 * 3600
/** Written by `dashboard.js`. */
const ZONE_COOKIE = 'hopcode-zone'

type CookieName = 'session' | 'form' | 'known' | 'step' | 'theme' | 'oidc'

/** Colors that the user has chosen instead of those of the system. */
export type Theme = 'light' | 'dark'

export const isTheme = (text: string | undefined): text is Theme =>
  text === 'light' || text === 'dark'

/**
 * The dashboard's cookies. Over https their names begin with `__Host-`: browsers accept such a
 * cookie only with Secure, for exactly this host and all paths. Over plain http, also on
 * http://localhost, browsers would reject it, so the names have no prefix.
 */
export class Cookies {
  readonly #isSecure: boolean

  constructor({ baseUrl }: { baseUrl: string }) {
    this.#isSecure = baseUrl.startsWith('https:')
  }

  findByName(name: CookieName, request: Request): string | undefined {
    const cookies = new Bun.CookieMap(request.headers.get('cookie') ?? '')
    return cookies.get(this.#nameOf(name)) ?? undefined
  }

  /** Undefined: the colors of the system. */
  findTheme(request: Request): Theme | undefined {
    const theme = this.findByName('theme', request)
    return isTheme(theme) ? theme : undefined
  }

  /** The browser's time zone, which the script of the pages stores. */
  findZone(request: Request): string | undefined {
    const cookies = new Bun.CookieMap(request.headers.get('cookie') ?? '')
    return findTimeZone(cookies.get(ZONE_COOKIE) ?? '')
  }

  /**
   * Lasts until the browser closes, or for `maxAgeSeconds`. The server limits the session
   * separately.
   */
  session = (token: string, maxAgeSeconds?: number): string => {
    const cookie = this.#set('session', token)
    return maxAgeSeconds === undefined ? cookie : `${cookie}; Max-Age=${maxAgeSeconds}`
  }
  /** Binds forms to a browser that has no session yet. */
  form = (token: string): string => this.#set('form', token)
  /** The trusted-device token: this browser has signed in to an account before. */
  known = (token: string): string => `${this.#set('known', token)}; Max-Age=${YEAR_SECONDS}`
  /** Between the password and the code of two-factor sign-in. */
  step = (token: string): string => this.#set('step', token)
  /** Between the start of a sign-in with the provider and its end. */
  oidc = (sealed: string): string => `${this.#set('oidc', sealed)}; Max-Age=${FLOW_LIFE_SECONDS}`
  theme = (theme: Theme): string => `${this.#set('theme', theme)}; Max-Age=${YEAR_SECONDS}`
  end = (name: CookieName): string => `${this.#set(name, '')}; Max-Age=0`

  #set(name: CookieName, value: string): string {
    const secure = this.#isSecure ? '; Secure' : ''
    return `${this.#nameOf(name)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}`
  }

  #nameOf(name: CookieName): string {
    const plain = name === 'session' ? 'hopcode' : `hopcode-${name}`
    return this.#isSecure ? `__Host-${plain}` : plain
  }
}
