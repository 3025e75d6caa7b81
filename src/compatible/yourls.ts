import type { KeyHolder } from '../accounts/store.ts'
import { readForm } from '../dashboard/ui/form.ts'
import type { AppError } from '../errors.ts'
import type { HitSeries } from '../hits/series.ts'
import { type RequestBodies, SMALL_BODY_MAX } from '../http/body.ts'
import { lengthOf } from '../http/unsent.ts'
import { html } from '../lib/html.ts'
import { getProperties } from '../links/properties.ts'
import type { PropertiesView } from '../links/schema.ts'
import { Url, withScheme } from '../links/url.ts'
import type { ListKit } from '../lists/export.ts'
import { listWithProperties } from '../lists/views.ts'
import { createOrFind, isTaken, type NewLinkDeps, parseField, titleOf, wordOf } from './new-link.ts'

/** The API of YOURLS, as its release `ANSWERS_AS` answers. */

const ANSWERS_AS = '1.10.4'
const LIST_MAX = 200

export type YourlsDeps = NewLinkDeps & ListKit & { series: HitSeries; bodies: RequestBodies }

/** The parameters of a request. An absent one is empty. */
export type Asked = (name: string) => string

/** `simple` is all that the format of this name has. */
interface Result {
  simple: string
  statusCode?: string
  errorCode?: string
  [name: string]: unknown
}

const askedOf = new WeakMap<Request, Asked>()

const inQuery = ({ url }: Request): Asked => {
  const { searchParams } = new URL(url)
  return (name) => searchParams.get(name)?.trim() ?? ''
}

/** Reads the parameters, of which those in the body replace those in the query. */
export async function readAsked(bodies: RequestBodies, request: Request): Promise<Asked> {
  const query = inQuery(request)
  if (request.method !== 'POST' || !request.headers.has('content-type')) return query
  // A body of this size needs no room in memory.
  const form = await readForm(bodies, request, { holder: '', bytesMax: SMALL_BODY_MAX })
  const asked: Asked = (name) => (form.has(name) ? form.text(name) : query(name))
  askedOf.set(request, asked)
  return asked
}

/** A signature that is hashed with a time cannot be verified: keys are stored hashed. */
export const keyIn = (asked: Asked): string | null =>
  asked('timestamp') === '' ? asked('signature') || null : null

export const isCreation = (asked: Asked): boolean => asked('action') === 'shorturl'

/** A request of an account. */
export interface Call {
  deps: YourlsDeps
  account: KeyHolder
  asked: Asked
  signal: AbortSignal
}

const SUCCESS = { message: 'success', statusCode: '200' }
const NO_SIMPLE = 'Statistics need format=json or format=xml'

const ACTIONS = new Map<string, (call: Call) => Result | Promise<Result>>([
  ['shorturl', shortUrl],
  [
    'expand',
    (call) => {
      const link = find(call)
      const { url, title, shorturl } = statsOf(link)
      return { simple: url, keyword: wordOf(link), shorturl, longurl: url, title, ...SUCCESS }
    },
  ],
  ['url-stats', (call) => ({ simple: NO_SIMPLE, link: statsOf(find(call)), ...SUCCESS })],
  ['stats', listStats],
  [
    'db-stats',
    async (call) => ({ simple: NO_SIMPLE, 'db-stats': await totalsOf(call), ...SUCCESS }),
  ],
  ['version', () => ({ simple: ANSWERS_AS, version: ANSWERS_AS })],
])

export async function answerYourls(call: Call): Promise<Response> {
  const action = ACTIONS.get(call.asked('action'))
  const names = [...ACTIONS.keys()].join(', ')
  return respond(call.asked, action ? await action(call) : refused(`The actions are ${names}`))
}

const refused = (message: string, status = '400') => ({
  simple: message,
  message,
  errorCode: status,
  statusCode: status,
})

const failed = (code: string, message: string, status = '400') => ({
  ...refused(message, status),
  simple: '',
  status: 'fail',
  code,
})

async function shortUrl({ deps, account, asked }: Call): Promise<Result> {
  const url = parseField(Url, withScheme(asked('url')), 'url')
  const fields = asked('title') ? { title: titleOf(asked('title')) } : {}
  const wanted = { url, word: asked('keyword'), name: 'keyword', fields, reuse: true }
  const { isFound, link } = await createOrFind(deps, account, wanted)
  const { shorturl, title, timestamp: date, clicks, ip } = statsOf(link)
  const about = { keyword: wordOf(link), url: link.url, title, date, ip, clicks }
  const status = isFound
    ? failed('error:url', `The URL has a short URL: ${shorturl}`)
    : { status: 'success', code: '', errorCode: '', ...SUCCESS }
  return { ...status, simple: shorturl, url: about, title, shorturl }
}

/** Throws `code_not_found`, also for a link of another account. */
const find = ({ deps, account, asked }: Call): PropertiesView =>
  getProperties(deps, account, asked('shorturl'))

/** Times are those of UTC. */
const statsOf = (link: PropertiesView) => ({
  shorturl: link.display_url,
  url: link.url ?? '',
  title: link.title ?? '',
  timestamp: link.created_at.slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace('T', ' '),
  ip: '',
  clicks: String(link.hit_count),
})

/** The links with the most hits, or the newest. */
async function listStats(call: Call): Promise<Result> {
  const { deps, account, asked, signal } = call
  const filter = asked('filter') || 'top'
  if (filter !== 'top' && filter !== 'last') return refused('The filters here are top and last')
  const count = (name: string) => (/^\d{1,9}$/.test(asked(name)) ? Number(asked(name)) : 0)
  const limit = Math.min(count('limit'), LIST_MAX)
  const query = { limit, offset: count('start'), byHits: filter === 'top' }
  const { items } = await listWithProperties(deps, account, query, signal)
  const links = Object.fromEntries(items.map((link, i) => [`link_${i + 1}`, statsOf(link)]))
  const stats = await totalsOf(call)
  return { simple: NO_SIMPLE, ...(items.length > 0 && { links }), stats, ...SUCCESS }
}

/** Of the account. Hits of the last moments are not counted yet. */
async function totalsOf({ deps: { pages, series }, account: { id }, signal }: Call) {
  const { total } = await pages.findPage({ accountId: id, limit: 0, offset: 0 }, signal)
  const { total: hits } = await series.bars({ accountId: id }, [0, 1])
  return { total_links: total, total_clicks: hits }
}

/** Refusals of a creation that YOURLS has too. Others keep their names and statuses. */
const CODES: { readonly [Code in AppError['code']]?: string } = {
  invalid_value: 'error:nourl',
  own_host: 'error:noloop',
  url_blocked: 'error:spam',
}

/** The refusal of a request in the format that it asks for. */
export function yourlsRefusal(refusal: AppError, request: Request): Response {
  const asked = askedOf.get(request) ?? inQuery(request)
  const { code, headers, fields, message, status } = refusal
  if (code === 'invalid_api_key') return respond(asked, refused(authMessage(asked), '403'), headers)
  if (!isCreation(asked)) return respond(asked, refused(message, String(status)), headers)
  const isWord = isTaken(refusal) || String(fields.invalidElements) === 'keyword'
  const known = isWord ? 'error:keyword' : CODES[code]
  const result = known ? failed(known, message) : failed(`error:${code}`, message, String(status))
  return respond(asked, result, headers)
}

function authMessage(asked: Asked): string {
  const isNamed = asked('username') || asked('password')
  const reason = isNamed ? 'Invalid username or password' : 'Please log in'
  const isTimed = asked('timestamp') && 'A signature with a timestamp cannot be verified'
  return `${isTimed || reason}: use an API key of this service as the signature`
}

/** Like `done`, or `holder[12]`: no other JavaScript, and no method of another object. */
const CALLBACK = /^[\w$]{1,100}(\[\d{1,20}\])?$/

function respond(asked: Asked, { simple, ...fields }: Result, others = {}): Response {
  const send = (type: string, text: string, status = 0) => {
    const about = { 'content-type': `${type};charset=utf-8`, 'content-length': lengthOf(text) }
    const sent = status || Number(fields.statusCode || fields.errorCode || 200)
    return new Response(text, { status: sent, headers: { ...others, ...about } })
  }
  const json = JSON.stringify(fields)
  const format = asked('format') || 'xml'
  if (format === 'json') return send('application/json', json)
  if (format === 'xml') return send('application/xml', `${XML}<root>${xmlOf(fields)}</root>\n`)
  if (format !== 'jsonp') return send('text/plain', simple)
  const callback = asked('callback') || asked('jsonp')
  if (CALLBACK.test(callback)) return send('application/javascript', `/**/${callback}(${json})`)
  return send('application/javascript', '{"errorCode":"400","error":"Invalid callback"}', 400)
}

const XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
const NOT_IN_XML = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu

/** Elements without attributes, named as the fields. */
function xmlOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) {
    return html`${String(value).replace(NOT_IN_XML, '\u{fffd}')}`.toString()
  }
  const fields = Object.entries(value)
  return fields.map(([name, one]) => `<${name}>${xmlOf(one)}</${name}>`).join('')
}
