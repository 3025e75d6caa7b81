/** What the contract says of links: each function is one operation on a plain list. */

import type { Account } from './accounts.ts'
import { Refusal, type Success } from './expected.ts'
import { isBlocked, listFault, sameUrl, urlFault } from './judge.ts'

export interface Link {
  /** Empty until the service has said what it chose. */
  code: string
  owner: Account
  url: string | null
  passcode: string
  createdAt: number
  hits: number
}

/** Of an imported link: no request can have it. */
export const NO_PASSCODE = '\0'

type Body = Record<string, unknown>

const BLOCKED = 'Destination URL is not allowed (host on abuse blocklist)'
const CODE = /^[A-Za-z0-9]{6,20}$/
/** Eight characters, none of which is mistaken for another. */
const GENERATED = /^[A-HJ-NP-Z2-9]{8}$/
const PASSCODE = /^[A-Z0-9]{24}$/

interface LinkSettings {
  baseUrl: string
  cdnUrl: string
  blockedHosts: readonly string[]
}

const isoTime = (time: number) => new Date(time).toISOString()

export class Links {
  /** In the order of creation. */
  all: Link[] = []
  /** Further paths of links, in exact case. */
  readonly aliases = new Map<string, Link>()
  readonly settings: LinkSettings

  constructor(settings: LinkSettings) {
    this.settings = settings
  }

  find(code: string): Link | undefined {
    const wanted = code.toUpperCase()
    return CODE.test(code) ? this.all.find((link) => link.code === wanted) : undefined
  }

  /** An alias has the form of the code. */
  isClosed(code: string): boolean {
    return [...this.aliases.keys()].some((path) => path.toUpperCase() === code.toUpperCase())
  }

  /** The link that visitors of a path get. */
  findByPath(path: string): Link | undefined {
    return this.find(path) ?? this.aliases.get(path)
  }

  shorten(owner: Account, { url }: Body, now: number): Success {
    const fault = this.#faultOf(url)
    if (fault) throw fault
    const { body, learn } = this.#create(owner, url as string, now)
    return { status: body.reused ? 200 : 201, body, learn }
  }

  reserve(owner: Account, body: Body, now: number): Success {
    if (typeof body.code !== 'string' || !CODE.test(body.code)) {
      throw new Refusal(400, 'Invalid code: must be 6-20 alphanumeric characters')
    }
    const code = body.code.toUpperCase()
    if (this.find(code) || this.isClosed(code))
      throw new Refusal(409, `Code already in use: ${code}`)
    const link = this.#add({ owner, url: null, code, createdAt: now })
    return {
      status: 201,
      body: {
        code,
        url: null,
        reserved: true,
        passcode: PASSCODE,
        short_url: this.#short(code),
        created_at: isoTime(now),
      },
      learn: ({ passcode }) => {
        link.passcode = String(passcode)
      },
    }
  }

  update(owner: Account, body: Body): Success {
    const { code, passcode, url } = requireTexts(body, ['code', 'passcode', 'url'])
    const fault = urlFault(url)
    if (fault) throw new Refusal(400, fault)
    const link = this.#authorizeByPasscode(owner, code, passcode)
    if (isBlocked(url, this.settings.blockedHosts)) throw new Refusal(422, BLOCKED)
    link.url = url
    return {
      status: 200,
      body: { code: link.code, url, short_url: this.#short(link.code), updated: true },
    }
  }

  delete(owner: Account, body: Body): Success {
    const { code, passcode } = requireTexts(body, ['code', 'passcode'])
    const link = this.#authorizeByPasscode(owner, code, passcode)
    this.all = this.all.filter((one) => one !== link)
    for (const [path, one] of this.aliases) if (one === link) this.aliases.delete(path)
    return { status: 200, body: { code: link.code, deleted: true } }
  }

  bulk(owner: Account, { urls }: Body, now: number, most: number): Success {
    if (!Array.isArray(urls) || urls.length < 1 || urls.length > most) {
      throw new Refusal(400, `urls must contain between 1 and ${most} items`)
    }
    const faults = urls.map((url) => this.#faultOf(url))
    if (faults.every((fault) => fault !== undefined)) {
      const isAllBlocked = faults.every(({ status }) => status === 422)
      throw isAllBlocked ? new Refusal(422, BLOCKED) : new Refusal(400, /^Invalid URL: /)
    }
    const items = urls.map((url, i) => {
      const fault = faults[i]
      if (!fault) return this.#create(owner, url, now)
      const shown = typeof url === 'string' ? url : null
      return { body: { ok: false, url: shown, error: fault.error }, learn: () => {} }
    })
    return {
      status: 201,
      body: { count: items.length, results: items.map(({ body }) => ({ ok: true, ...body })) },
      learn: ({ results }) => {
        for (const [i, said] of (results as Body[]).entries()) items[i]?.learn(said)
      },
    }
  }

  /** The link that a public read asks for. */
  get(text: string, link: Link | undefined = this.find(text)): Link {
    if (!link) throw new Refusal(404, `Code not found: ${text.toUpperCase()}`)
    return link
  }

  lookup({ code, url, createdAt, hits }: Link) {
    return { code, url, created_at: isoTime(createdAt), hit_count: hits }
  }

  addressesOf({ code, url }: Link) {
    return { code, url, ...this.#addresses(code), qr_storage_url: this.imageOf(code) }
  }

  imageOf(code: string): string {
    return `${this.settings.cdnUrl}/qr/${code}.png`
  }

  list(owner: Account, query: URLSearchParams): Success {
    const fault = listFault(query)
    if (fault) throw new Refusal(400, fault)
    const limit = Number(query.get('limit') ?? 50)
    const offset = Number(query.get('offset') ?? 0)
    const search = (query.get('search') ?? '').toLowerCase()
    const matches = this.all
      .filter((link) => link.owner === owner)
      .filter(({ code, url }) =>
        [code, url ?? ''].some((text) => text.toLowerCase().includes(search)),
      )
      .reverse()
    const items = matches
      .slice(offset, offset + limit)
      .map((link) => ({ ...this.lookup(link), ...this.#addresses(link.code) }))
    const body = { total: matches.length, limit, offset, count: items.length, items }
    return { status: 200, body }
  }

  #short = (code: string) => `${this.settings.baseUrl}/${code}`

  #addresses(code: string) {
    return { short_url: this.#short(code), qr_url: `${this.settings.baseUrl}/qr/${code}` }
  }

  #faultOf(url: unknown): Refusal | undefined {
    const fault = urlFault(url)
    if (fault) return new Refusal(400, fault)
    const isOnList = isBlocked(String(url), this.settings.blockedHosts)
    return isOnList ? new Refusal(422, BLOCKED) : undefined
  }

  #authorizeByPasscode(owner: Account, code: string, passcode: string): Link {
    const link = this.find(code)
    if (link?.passcode !== passcode || link.owner !== owner || passcode === NO_PASSCODE) {
      throw new Refusal(403, `Invalid passcode for code ${code.toUpperCase()}`)
    }
    return link
  }

  #add(link: Pick<Link, 'owner' | 'url' | 'code' | 'createdAt'>): Link {
    const added = { ...link, passcode: '', hits: 0 }
    this.all.push(added)
    return added
  }

  /** The link that the account has for the URL, or a new one, and what is said of it. */
  #create(owner: Account, url: string, now: number) {
    const found = this.all.find(
      (link) => link.owner === owner && link.url !== null && sameUrl(link.url, url),
    )
    const link = found ?? this.#add({ owner, url, code: '', createdAt: now })
    const body = {
      code: link.code || GENERATED,
      url: link.url,
      short_url: /./,
      qr_url: /./,
      passcode: found ? null : PASSCODE,
      created_at: isoTime(link.createdAt),
      reused: found !== undefined,
    }
    const learn = (said: Body) => {
      const code = String(said.code)
      if (!found) {
        if (this.find(code)) throw new Error(`${code} is another link's`)
        Object.assign(link, { code, passcode: said.passcode })
      }
      const wanted = { code: link.code, ...this.#addresses(link.code) }
      for (const [name, value] of Object.entries(wanted)) {
        if (said[name] !== value) throw new Error(`${name} is ${said[name]}, not ${value}`)
      }
    }
    return { body, learn }
  }
}

function requireTexts<Name extends string>(
  body: Body,
  names: readonly Name[],
): Record<Name, string> {
  const missing = names.find((name) => typeof body[name] !== 'string')
  if (missing) throw new Refusal(400, `Missing required field: ${missing}`)
  const known: readonly string[] = names
  const unknown = Object.keys(body).find((name) => !known.includes(name))
  if (unknown) {
    throw new Refusal(400, `Unknown field: ${unknown}. The fields are ${names.join(', ')}.`)
  }
  return body as Record<Name, string>
}
