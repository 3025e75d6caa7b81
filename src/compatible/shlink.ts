import { z } from 'zod'
import type { KeyHolder } from '../accounts/store.ts'
import type { AppError } from '../errors.ts'
import { parseWith, type RequestBodies, readBody } from '../http/body.ts'
import { requireAccess } from '../http/guard.ts'
import { propertiesOf } from '../links/link-change.ts'
import { changeLink, getProperties } from '../links/properties.ts'
import { LinkBody, type LinkFields, type PropertiesView } from '../links/schema.ts'
import { Url, withScheme } from '../links/url.ts'
import type { ListKit } from '../lists/export.ts'
import { OwnListQuery } from '../lists/schema.ts'
import { listWithProperties } from '../lists/views.ts'
import {
  createOrFind,
  invalidField,
  isTaken,
  type NewLinkDeps,
  parseField,
  wordOf,
} from './new-link.ts'

/** The REST API of Shlink in version 3, as its release `SHLINK_RELEASE` answers. */

export const SHLINK_RELEASE = '5.1.5'

export type ShlinkDeps = NewLinkDeps & ListKit & { bodies: RequestBodies }

/** Reads JSON of any content type: many a client names none. */
function readSent({ bodies }: ShlinkDeps, request: Request, { id }: KeyHolder): Promise<Sent> {
  const headers = new Headers(request.headers)
  headers.set('content-type', 'application/json')
  return readBody(bodies, new Request(request, { headers }), Sent, id)
}

const Sent = z.record(z.string(), z.unknown(), 'Invalid body: must be a JSON object')
type Sent = z.output<typeof Sent>

/** Properties by the names of Shlink. */
const NAMES = {
  title: 'title',
  tags: 'tags',
  validSince: 'starts_at',
  validUntil: 'expires_at',
  maxVisits: 'max_hits',
  forwardQuery: 'forward_query',
  domain: 'domain',
} as const satisfies Record<string, keyof LinkFields>

function propertiesIn(sent: Sent): LinkFields {
  const given = Object.entries(NAMES).filter(([theirs]) => sent[theirs] !== undefined)
  return Object.fromEntries(
    given.map(([theirs, ours]) => [ours, parseField(LinkBody.shape[ours], sent[theirs], theirs)]),
  ) as LinkFields
}

const urlIn = ({ longUrl }: Sent) =>
  parseField(Url, typeof longUrl === 'string' ? withScheme(longUrl) : longUrl, 'longUrl')

/** Finds a link only if the request says so, and asks for its URL alone. */
export async function createShortUrl(deps: ShlinkDeps, account: KeyHolder, request: Request) {
  const sent = await readSent(deps, request, account)
  const [url, asked, name] = [urlIn(sent), propertiesIn(sent), 'customSlug']
  const slug = parseField(z.string().nullish(), sent[name], name) ?? ''
  const wanted = {
    url,
    name,
    // Blanks become dashes, as there.
    word: slug.trim().replaceAll(' ', '-'),
    fields: propertiesOf(deps.addresses, { ...asked, forward_query: asked.forward_query ?? true }),
    reuse: sent.findIfExists === true && slug === '' && Object.keys(asked).length === 0,
  }
  return shortUrlView((await createOrFind(deps, account, wanted)).link)
}

export const getShortUrl = (deps: ShlinkDeps, account: KeyHolder, address: string) =>
  shortUrlView(getProperties(deps, account, address))

/** Throws `manage_key_needed` for another URL, if the key is none that can set it. */
export async function editShortUrl(
  deps: ShlinkDeps,
  account: KeyHolder,
  request: Request,
  address: string,
) {
  const { domain: _, ...sent } = await readSent(deps, request, account)
  const url = sent.longUrl === undefined ? undefined : urlIn(sent)
  if (url) requireAccess(account, 'manage')
  const properties = propertiesOf(deps.addresses, propertiesIn(sent))
  await changeLink(deps, account, address, { url, ...properties })
  return getShortUrl(deps, account, address)
}

export async function listShortUrls(deps: ShlinkDeps, account: KeyHolder, request: Request) {
  const { page, ...wanted } = listQuery(new URL(request.url).searchParams)
  const { total, limit, items } = await listWithProperties(deps, account, wanted, request.signal)
  const pagination = {
    currentPage: page,
    pagesCount: Math.max(1, Math.ceil(total / limit)),
    itemsPerPage: limit,
    itemsInCurrentPage: items.length,
    totalItems: total,
  }
  return { shortUrls: { data: items.map(shortUrlView), pagination } }
}

const PER_PAGE_MAX = 200
const NEWEST_FIRST = /^(dateCreated-DESC)?$/
const MOST_HITS_FIRST = /^(visits|nonBotVisits)-DESC$/

/** A list without a filter or order would have other links than the client expects. */
function listQuery(query: URLSearchParams) {
  const { page = '1', itemsPerPage = '10', orderBy = '', ...filters } = Object.fromEntries(query)
  const { searchTerm: search, tags, 'tags[]': tag = tags, tagsMode: _, ...others } = filters
  const unknown = query.getAll('tags[]').length > 1 ? 'tags' : Object.keys(others)[0]
  if (unknown) throw invalidField(unknown, `Lists by this value of ${unknown} are not supported`)
  const byHits = MOST_HITS_FIRST.test(orderBy)
  if (!byHits && !NEWEST_FIRST.test(orderBy)) throw invalidField('orderBy')
  // -1: all.
  const perPage = Number(itemsPerPage) < 1 ? PER_PAGE_MAX : Number(itemsPerPage)
  const limit = Math.min(perPage, PER_PAGE_MAX)
  const offset = (Number(page) - 1) * limit
  const texts = { limit: String(limit), offset: String(offset), search, tag }
  return { page: Number(page), byHits, ...parseWith(OwnListQuery, texts) }
}

/** A time as PHP writes it. */
const atom = (time: string | null) => time?.replace(/\.\d+Z$/, '+00:00') ?? null

/** Bots are not told apart. */
const shortUrlView = (link: PropertiesView) => ({
  shortCode: wordOf(link),
  shortUrl: link.display_url,
  longUrl: link.url ?? '',
  dateCreated: atom(link.created_at),
  visitsSummary: { total: link.hit_count, nonBots: link.hit_count, bots: 0 },
  tags: link.tags,
  meta: {
    validSince: atom(link.starts_at),
    validUntil: atom(link.expires_at),
    maxVisits: link.max_hits,
  },
  domain: link.domain,
  title: link.title,
  crawlable: !link.no_index,
  forwardQuery: link.forward_query,
  hasRedirectRules: link.destinations.length > 0,
})

/** Refusals that Shlink has too. Others keep their statuses. */
const PROBLEMS: {
  readonly [Code in AppError['code']]?: readonly [status: number, type: string, title: string]
} = {
  invalid_api_key: [401, 'invalid-api-key', 'Invalid API key'],
  code_not_found: [404, 'short-url-not-found', 'Short URL not found'],
  path_not_found: [404, 'not-found', 'Not Found'],
  invalid_value: [400, 'invalid-data', 'Invalid data'],
  url_blocked: [400, 'invalid-url', 'Invalid URL'],
  own_host: [400, 'invalid-url', 'Invalid URL'],
  invalid_json: [400, 'malformed-request-body', 'Malformed request body'],
}

function kindOf(refusal: AppError, { headers }: Request) {
  if (isTaken(refusal)) return [400, 'non-unique-slug', 'Invalid custom slug'] as const
  if (refusal.code !== 'invalid_api_key' || headers.has('x-api-key')) return PROBLEMS[refusal.code]
  return [401, 'missing-authentication', 'Invalid authorization'] as const
}

/** RFC 9457. */
export function problem(refusal: AppError, request: Request): Response {
  const [status = refusal.status, type, title = 'Error'] = kindOf(refusal, request) ?? []
  const uri = type ? `https://shlink.io/api/error/${type}` : 'about:blank'
  const body = { type: uri, title, detail: refusal.message, status, ...refusal.fields }
  const headers = { ...refusal.headers, 'content-type': 'application/problem+json' }
  return new Response(JSON.stringify(body), { status, headers })
}
