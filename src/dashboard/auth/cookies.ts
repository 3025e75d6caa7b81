const YEAR_SECONDS = 365 * 24 * 3600

type CookieName = 'session' | 'form' | 'known' | 'step'

/**
 * The dashboard's cookies. Over https their names begin with `__Host-`, which a browser takes only
 * with Secure, for this very host and all of its paths. Over plain http a browser would take no
 * such cookie: there, as on http://localhost, the names are plain.
 */
export class Cookies {
  readonly #isSecure: boolean

  constructor({ baseUrl }: { baseUrl: string }) {
    this.#isSecure = baseUrl.startsWith('https:')
  }

  find(name: CookieName, request: Request): string | undefined {
    const cookies = new Bun.CookieMap(request.headers.get('cookie') ?? '')
    return cookies.get(this.#nameOf(name)) ?? undefined
  }

  /** Goes when the browser closes; the server ends the session before or after. */
  session = (token: string): string => this.#set('session', token)
  /** Binds a form to the browser of somebody who is not signed in. */
  form = (token: string): string => this.#set('form', token)
  /** Tells a browser that has signed in to an account from one that has not. */
  known = (mark: string): string => `${this.#set('known', mark)}; Max-Age=${YEAR_SECONDS}`
  /** Between the password and the code of two-factor sign-in. */
  step = (token: string): string => this.#set('step', token)
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
