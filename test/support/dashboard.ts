import type { TestApp } from './app.ts'

/** A browser without scripts: it keeps cookies, follows nothing, and sends the forms of pages. */
export class Visitor {
  readonly cookies = new Map<string, string>()
  readonly #app: Pick<TestApp, 'url'>
  readonly #headers: Record<string, string>

  /** `from`: the visitor's address, through a trusted proxy. */
  constructor(
    app: Pick<TestApp, 'url'>,
    { from = '192.0.2.50', ...headers }: Record<string, string> = {},
  ) {
    this.#app = app
    this.#headers = { 'x-forwarded-for': from, 'user-agent': 'Test Firefox/1 Linux', ...headers }
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Seen> {
    return this.#send(path, { headers })
  }

  /** Sends fields with the token of the page's form, as a browser would send them. */
  async post(
    path: string,
    fields: Record<string, string | readonly string[]>,
    { from = path, headers = {} }: { from?: string; headers?: Record<string, string> } = {},
  ): Promise<Seen> {
    const csrf = fields.csrf ?? (await this.get(from)).csrf
    const body = new URLSearchParams()
    for (const [name, value] of Object.entries({ ...fields, csrf })) {
      for (const one of [value].flat()) body.append(name, one)
    }
    return this.#send(path, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
      body,
    })
  }

  /** Sends a form as a browser of before 2020 would, which sends no `Sec-Fetch-Site`. */
  async postAsOld(
    path: string,
    fields: Record<string, string>,
    headers: Record<string, string>,
  ): Promise<Seen> {
    return this.#send(path, { method: 'POST', headers, body: new URLSearchParams(fields) })
  }

  /** For a service with open sign-up, which answers alike if the address has an account already. */
  async signUp(email: string, password = PASSWORD): Promise<Seen> {
    await this.post('/app/sign-up', { email, password })
    return this.signIn(email, password)
  }

  signIn(email: string, password = PASSWORD): Promise<Seen> {
    return this.post('/app/sign-in', { email, password })
  }

  /** The value of the header. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async #send(path: string, init: RequestInit): Promise<Seen> {
    const { cookie } = this
    const response = await fetch(new URL(path, this.#app.url), {
      ...init,
      headers: { ...this.#headers, ...(cookie && { cookie }), ...init.headers },
      redirect: 'manual',
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/max-age=0/i.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      location: response.headers.get('location'),
      setCookies: response.headers.getSetCookie(),
      text,
      csrf: /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? '',
      notices: noticesIn(text),
      invalid: invalidIn(text),
    }
  }
}

export interface Seen {
  status: number
  headers: Headers
  location: string | null
  setCookies: string[]
  text: string
  /** The token of the page's first form; empty if it has none. */
  csrf: string
  notices: string[]
  invalid: string[]
}

/** The role of each notice of a page: `alert` for an error, `status` for what was done. */
export const noticesIn = (text: string): string[] =>
  [...text.matchAll(/class="notice \w+" role="(\w+)"/g)].map(([, role = '']) => role)

const INVALID = / name="([\w-]+)"[^>]* aria-invalid="true" aria-describedby="[^"]*\b[\w-]+-error"/g

/** The names of the fields that are marked as wrong and described by their error. */
export const invalidIn = (text: string): string[] =>
  [...text.matchAll(INVALID)].map(([, name = '']) => name)

export const PASSWORD = 'seven purple otters'
export const OWNER = 'owner@example.com'

/** The owner, signed in through the set-up link. The API key is the one that the page showed. */
export async function setUpOwner(app: TestApp): Promise<{ owner: Visitor; key: string }> {
  const owner = new Visitor(app)
  const path = new URL(app.setupLink).pathname
  const seen = await owner.post(path, { email: OWNER, password: PASSWORD, account: OWNER })
  return { owner, key: /value="(hop_\w+)"/.exec(seen.text)?.[1] ?? '' }
}
