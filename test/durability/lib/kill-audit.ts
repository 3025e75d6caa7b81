import { checkDeletions, checkHistory } from './kill-history.ts'
import { DELETED, isActive, type Known, type KnownLink, RESERVED } from './kill-known.ts'

/** Of a host, or of several that hold the same. */
interface Service {
  fetch(path: string, init?: RequestInit): Promise<Response>
}

interface Item {
  code: string
  url: string | null
  hit_count: number
}

const PAGE = 200

/**
 * Compares a service that has just started with what its clients were told before the kill. Returns
 * what is wrong; what was open until now is known afterwards.
 */
export async function audit(service: Service, key: string, known: Known): Promise<string[]> {
  const problems: string[] = []
  const { total_redirects } = await getJson<{ total_redirects: number }>(
    service,
    '/api/status',
    key,
  )
  if (!known.redirects.allows(total_redirects)) {
    problems.push(`total_redirects is ${total_redirects}, not ${known.redirects}`)
  }
  known.redirects.settle(total_redirects)

  const items = new Map<string, Item>()
  for await (const item of listAll(service, key)) {
    if (items.has(item.code)) problems.push(`${item.code} is listed twice`)
    items.set(item.code, item)
  }
  problems.push(...twice(items), ...adoptUnanswered(known, items))
  for (const link of known.links.values()) problems.push(...judge(link, items.get(link.code)))
  for (const { code, url } of items.values()) {
    if (!known.links.has(code)) problems.push(`${code} (${url}) was never asked for`)
  }
  problems.push(...(await checkDeletions(service, key, known)))
  for (const link of known.links.values()) {
    if (link.touched) problems.push(...(await checkHistory(service, key, link)))
    if (link.touched) problems.push(...(await visit(service, key, link, known)))
    link.touched = false
  }
  return problems
}

/** Shortening gives a URL one code; only changes of URLs may, and they have others here. */
function twice(items: ReadonlyMap<string, Item>): string[] {
  const codes = new Map<string, string>()
  const problems: string[] = []
  for (const { code, url } of items.values()) {
    if (url === null) continue
    const other = codes.get(url)
    if (other) problems.push(`${url} is ${other}, and ${code} too`)
    codes.set(url, code)
  }
  return problems
}

/** A creation whose answer never came is there whole or not at all. */
function adoptUnanswered(known: Known, items: ReadonlyMap<string, Item>): string[] {
  const problems: string[] = []
  const byUrl = new Map([...items.values()].map((item) => [item.url, item]))
  for (const urls of known.unanswered) {
    const found = urls.flatMap((url) => byUrl.get(url) ?? [])
    if (found.length !== 0 && found.length !== urls.length) {
      problems.push(`${found.length} of a bulk of ${urls.length} are there: ${urls[0]} ...`)
    }
    for (const { code, url } of found) {
      // Of a shared URL, another client may have been answered. A deleted code can be drawn again.
      if (known.links.get(code)?.states.includes(DELETED) === false) continue
      known.add(code, { states: [url as string], kept: true })
      if (url?.includes('/shared/')) known.sharedCodes.set(url, code)
    }
  }
  known.unanswered = []
  return problems
}

function judge(link: KnownLink, item: Item | undefined): string[] {
  const { code, states, hits } = link
  const state = item ? (item.url ?? RESERVED) : DELETED
  const problems: string[] = []
  if (!states.includes(state)) problems.push(`${code} is ${state}, not ${states.join(' or ')}`)
  if (item && !hits.allows(item.hit_count)) {
    problems.push(`${code} (${state}) has ${item.hit_count} hits, not ${hits}`)
  }
  link.states = [state]
  hits.settle(item?.hit_count ?? 0)
  return problems
}

/** The public answers say the same as the list. */
async function visit(
  service: Service,
  key: string,
  { code, states: [state], hits }: KnownLink,
  known: Known,
): Promise<string[]> {
  const problems: string[] = []
  if (state !== DELETED) {
    const found = await getJson<Item>(service, `/api/lookup/${code}`, key)
    if ((found.url ?? RESERVED) !== state || found.hit_count !== hits.least) {
      problems.push(`${code} (${state}, ${hits} hits) is looked up as ${JSON.stringify(found)}`)
    }
  }
  const { status, headers } = await service.fetch(`/${code}`)
  const location = headers.get('location')
  const isRight = isActive(state) ? status === 302 && location === state : status === 404
  if (!isRight) problems.push(`/${code}, which is ${state}, answers ${status} ${location}`)
  if (status === 302) {
    hits.settle(hits.least + 1)
    known.redirects.settle(known.redirects.least + 1)
  }
  return problems
}

async function* listAll(service: Service, key: string): AsyncGenerator<Item> {
  for (let offset = 0; ; offset += PAGE) {
    const path = `/api/list?limit=${PAGE}&offset=${offset}`
    const { items } = await getJson<{ items: Item[] }>(service, path, key)
    yield* items
    if (items.length < PAGE) return
  }
}

async function getJson<View>(service: Service, path: string, key: string): Promise<View> {
  const response = await service.fetch(path, { headers: { 'x-api-key': key } })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} is answered ${response.status} ${text}`)
  return JSON.parse(text)
}
