import { ACCOUNT_EMAIL, hopcodeSettings, type Link } from './variants.ts'

/** Less than the plan allows, to keep requests short. */
const BULK_MAX = 1000

interface LinkList {
  total: number
  items: (Link & { hit_count: number })[]
}

/** The headers of a request of the account. */
export const accountHeaders = (apiKey: string): Record<string, string> => ({
  'X-API-Key': apiKey,
  'Content-Type': 'application/json',
})

/** Creates an Enterprise account in `dataDir`. Returns its API key. */
export const createAccount = (program: string[], dataDir: string): string =>
  runAccount<{ api_key: string }>(program, dataDir, ['create', '--plan', 'enterprise']).api_key

/** The path of a new link that sets the password of the account. Needs no running service. */
export const issueResetPath = (program: string[], dataDir: string): string =>
  new URL(runAccount<{ link: string }>(program, dataDir, ['reset-password']).link).pathname

function runAccount<Result>(program: string[], dataDir: string, args: string[]): Result {
  const { PATH = '', HOME = '' } = process.env
  const words = [...program, 'account', ...args, '--email', ACCOUNT_EMAIL, '--json']
  const env = { PATH, HOME, ...hopcodeSettings(dataDir, 0) }
  const run = Bun.spawnSync(words, { cwd: dataDir, env })
  if (run.exitCode !== 0) throw new Error(`account ${args.join(' ')} failed:\n${run.stderr}`)
  return JSON.parse(String(run.stdout)) as Result
}

/** So many requests are in flight, which share commits and round trips. */
const AT_ONCE = 50

/** Runs a request for each item. Returns the results in their order. */
export async function forEach<Item, Result>(
  items: readonly Item[],
  request: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let at = 0; at < items.length; at += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(request))))
  }
  return results
}

/** API calls outside the timed parts. They are charged to the account. */
export class HopcodeClient {
  readonly #origin: string
  readonly #headers: Record<string, string>

  constructor(origin: string, apiKey: string) {
    this.#origin = origin
    this.#headers = accountHeaders(apiKey)
  }

  /** A code for each URL, in their order. Throws unless every one is created. */
  async createLinks(urls: readonly string[]): Promise<Link[]> {
    const links: Link[] = []
    for (let at = 0; at < urls.length; at += BULK_MAX) {
      const body = JSON.stringify({ urls: urls.slice(at, at + BULK_MAX) })
      const answer = await this.#call('/api/bulk-shorten', { method: 'POST', body })
      const { results } = answer as { results: (Link & { ok: boolean })[] }
      const refused = results.find(({ ok }) => !ok)
      if (refused) throw new Error(`a link was refused: ${JSON.stringify(refused)}`)
      links.push(...results.map(({ code, url }) => ({ code, url })))
    }
    return links
  }

  /** Changes properties of a link. */
  async patchLink(code: string, properties: object): Promise<void> {
    const body = JSON.stringify(properties)
    await this.#call(`/api/links/${code}`, { method: 'PATCH', body })
  }

  /** Adds a webhook for new links. Returns its id. */
  async addWebhook(url: string): Promise<number> {
    const body = JSON.stringify({ url, events: ['link.created'] })
    return ((await this.#call('/api/webhooks', { method: 'POST', body })) as { id: number }).id
  }

  async removeWebhook(id: number): Promise<void> {
    await this.#call(`/api/webhooks/${id}`, { method: 'DELETE' })
  }

  /** `hit_count` of each code, in their order. */
  async hitCounts(codes: readonly string[]): Promise<number[]> {
    const found = await forEach(codes, (code) => this.#call(`/api/lookup/${code}`))
    return found.map((link) => (link as { hit_count: number }).hit_count)
  }

  /** Every redirect ever served. */
  async totalRedirects(): Promise<number> {
    return ((await this.#call('/api/status')) as { total_redirects: number }).total_redirects
  }

  /** Number of links of the account. */
  async codesHeld(): Promise<number> {
    return (await this.list('limit=1')).total
  }

  /** `query`: the part after the `?`. */
  async list(query: string): Promise<LinkList> {
    return (await this.#call(`/api/list?${query}`)) as LinkList
  }

  async #call(path: string, request: RequestInit = {}): Promise<unknown> {
    const answer = await fetch(this.#origin + path, { ...request, headers: this.#headers })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`)
    return JSON.parse(text)
  }
}
