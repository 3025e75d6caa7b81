import fc from 'fast-check'
import { type Answer, type CallOptions, JSON_TYPE, type TestApp } from './app.ts'
import type { Operation } from './openapi.ts'
import { messageOf } from './refusals.ts'

/**
 * Requests made from the API description: for each operation a good one, each refusal in its order,
 * and any number of random ones, good and bad. It knows the JSON Schema that the service's own
 * document uses, and throws on anything else.
 */

/** A code and its passcode. */
export interface Held {
  code: string
  passcode: string
}

export interface Sent {
  key?: string
  /** In the path. */
  code?: string
  query?: Record<string, unknown>
  body?: unknown
  /** In place of the JSON of `body`. */
  raw?: string
  /** In place of the operation's own content type. */
  type?: string
}

export const UNKNOWN = 'Unknown1'
const WRONG_PASSCODE = 'A'.repeat(24)
export const NEW = 'https://example.com/new'

export function send(
  app: TestApp,
  [name, operation]: readonly [string, Operation],
  { key, code = '', query = {}, body, raw, type = contentType(operation) }: Sent,
  options: CallOptions = {},
): Promise<Answer> {
  const [method = '', pattern = ''] = name.split(' ')
  const path = pattern.replace('{code}', encodeURIComponent(code))
  const texts = Object.entries(query).map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`)
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  return app.call(method, texts.length > 0 ? `${path}?${texts.join('&')}` : path, {
    ...(key !== undefined && { key }),
    ...(content !== undefined && { raw: content }),
    ...options,
    headers: { ...(type !== undefined && { 'content-type': type }), ...options.headers },
  })
}

const contentType = ({ requestBody }: Operation) => Object.keys(requestBody?.content ?? {})[0]
export const bodySchema = ({ requestBody }: Operation) =>
  requestBody?.content[JSON_TYPE]?.schema as Schema | undefined
const pathSchema = ({ parameters }: Operation) =>
  parameters.find((one) => one.in === 'path')?.schema as Schema | undefined

/** Parameters that refuse some text. */
const strictParameters = ({ parameters }: Operation) =>
  parameters
    .filter((one) => one.in === 'query')
    .map(({ name, schema }) => ({ name, schema: schema as Schema }))
    .filter(({ schema }) => schema.type !== 'string' || schema.enum || schema.pattern)

/** What the operation does to the link, or with a free code of that name. */
export function goodRequest(operation: Operation, { code, passcode }: Held): Sent {
  const type = contentType(operation) ?? ''
  const schema = bodySchema(operation)
  const values = { url: NEW, urls: [NEW, NEW], code: code.toLowerCase(), passcode }
  const required = Object.entries(values).filter(([name]) => schema?.required?.includes(name))
  const body = required.length > 0 ? Object.fromEntries(required) : { title: 'Poster' }
  const text = operation.requestBody?.content[type]?.schema.example
  return {
    ...(pathSchema(operation) && { code: code.toLowerCase() }),
    ...(schema ? { body } : text !== undefined && { raw: text as string }),
  }
}

/** The links, the key and the URL that requests use. */
export interface World {
  own: Held
  /** Of another account. */
  foreign: Held
  /** A key that is read-only. */
  reader: string
  /** A URL that is refused with 422. */
  blocked: string
}

export interface Refusal {
  status: number
  says: string | RegExp
  sent: Sent
}

interface Fault extends Omit<Refusal, 'sent'> {
  spoil: (sent: Sent) => Sent
}

const fault = (status: number, says: string | RegExp, wrong: Sent): Fault => ({
  status,
  says,
  spoil: (sent) => ({
    ...sent,
    ...wrong,
    ...(wrong.query && { query: { ...sent.query, ...wrong.query } }),
    ...(wrong.body !== undefined && { body: { ...(sent.body as object), ...wrong.body } }),
  }),
})

const when = (isSo: unknown, ...faults: Fault[]): Fault[] => (isSo ? faults : [])

/**
 * The refusals of an operation in their order. Each comes twice: with all faults that come later,
 * and with its own fault alone.
 */
export function refusalsOf(operation: Operation, world: World): Refusal[] {
  const good = goodRequest(operation, creates(operation) ? FREE : world.own)
  const faults = [
    ...faultsOfCaller(operation, world),
    ...faultsOfValues(operation, good),
    ...faultsOfLink(operation, world),
  ]
  return faults.flatMap(({ status, says, spoil }, at) => {
    const all = faults.slice(at).reduceRight((sent, one) => one.spoil(sent), good)
    return [all, spoil(good)].map((sent) => ({ status, says, sent }))
  })
}

/** The documented successes: a repeated request comes after its first, each format once. */
export function successesOf(operation: Operation, { own }: World) {
  const good = goodRequest(operation, creates(operation) ? FREE : own)
  const format = operation.parameters.find(({ name }) => name === 'format')?.schema
  const formats = (format as Schema | undefined)?.enum ?? []
  const statuses = Object.keys(operation.responses).map(Number)
  return statuses
    .filter((status) => status < 400)
    .sort((a, b) => b - a)
    .flatMap((status) => [
      { status, sent: good },
      ...formats.map((one) => ({ status, sent: { ...good, query: { format: one } } })),
    ])
}

const FREE: Held = { code: 'SPRING26', passcode: WRONG_PASSCODE }
const propertiesOf = (operation: Operation) => bodySchema(operation)?.properties ?? {}
const needsPasscode = (operation: Operation) => 'passcode' in propertiesOf(operation)
const creates = (operation: Operation) =>
  'code' in propertiesOf(operation) && !needsPasscode(operation)

/** A byte longer than a body of the operation may be. */
const longFor = ({ operationId }: Operation) =>
  ' '.repeat((/bulk|import/i.test(operationId) ? 8 * 1024 : 64) * 1024 + 1)

function faultsOfCaller(operation: Operation, { own, reader }: World): Fault[] {
  const strangers = operation.security.length > 0 ? ['nonsense', own.passcode] : []
  return [
    ...strangers.map((key) => fault(401, messageOf('invalid_api_key'), { key })),
    ...when(
      strangers.length > 0 && '403' in operation.responses,
      fault(403, messageOf('read_only_key'), { key: reader }),
    ),
  ]
}

/** Names the value, in the singular. */
const about = (name: string) => new RegExp(`\\b${name.replace(/s$/, '')}`, 'i')
const sampleOf = <T>(values: fc.Arbitrary<T>): T =>
  fc.sample(values, { seed: 26, numRuns: 1 })[0] as T

/** A passcode of another length is a wrong one: 403. */
const refused = (name: string, schema: Schema): Schema =>
  name === 'passcode' ? { type: 'string' } : schema

function faultsOfValues(operation: Operation, { body }: Sent): Fault[] {
  const required = bodySchema(operation)?.required ?? []
  return [
    ...strictParameters(operation).map(({ name, schema }) =>
      fault(400, about(name), { query: { [name]: sampleOf(violatingTexts(schema)) } }),
    ),
    ...when(
      operation.requestBody,
      fault(415, /^Unsupported media type: /, { type: 'text/plain' }),
      fault(413, /^Request body too large: /, { raw: longFor(operation) }),
      fault(400, /./, { raw: (JSON.stringify(body) ?? '').slice(0, -1) }),
    ),
    ...Object.entries(propertiesOf(operation)).flatMap(([name, schema]) => [
      ...when(required.includes(name), fault(400, about(name), { body: { [name]: undefined } })),
      fault(400, about(name), { body: { [name]: sampleOf(violationsOf(refused(name, schema))) } }),
    ]),
  ]
}

function faultsOfLink(operation: Operation, { own, foreign, blocked }: World): Fault[] {
  const { url, urls, expired_url, aliases } = propertiesOf(operation)
  const unknown = { code: UNKNOWN, passcode: WRONG_PASSCODE }
  const notFound = ({ code }: Held) =>
    fault(404, messageOf('code_not_found', code.toUpperCase()), { code })
  const notAllowed = (body: Held) =>
    fault(403, messageOf('invalid_passcode', body.code.toUpperCase()), { body })
  const wrong = { ...own, passcode: foreign.passcode }
  const isPrivate = operation.security.length > 0
  const refusal = messageOf('url_blocked')
  return [
    ...(pathSchema(operation) ? [unknown, ...(isPrivate ? [foreign] : [])].map(notFound) : []),
    ...(needsPasscode(operation) ? [unknown, wrong, foreign].map(notAllowed) : []),
    ...when(aliases, fault(409, messageOf('path_taken', TAKEN), { body: { aliases: [TAKEN] } })),
    ...when(
      creates(operation),
      fault(409, messageOf('code_in_use', own.code), { body: { code: own.code } }),
    ),
    ...when(urls, fault(422, refusal, { body: { urls: [blocked, blocked] } })),
    ...when(url, fault(422, refusal, { body: { url: blocked } })),
    ...when(expired_url, fault(422, refusal, { body: { expired_url: blocked } })),
  ]
}

const TAKEN = 'api/status'

/**
 * Rules that the document cannot state: readers must tell the colors apart, a logo must have been
 * uploaded, and others need a larger image.
 */
const QR_OPTIONS = /^(dark|light|margin|level|logo|caption|mm|transparent|capitals|ref)$/
/** The properties of links have such rules too, as the order of two times. */
const OWN_FIELDS = /^(url|urls|code|passcode)$/

const only = <Value>(values: Record<string, Value>, isKept: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(values).filter(([name]) => isKept(name)))

/** Random requests as described. Without a `code`, they are to be about a link that there is. */
export function goodRequests(operation: Operation): fc.Arbitrary<Sent> {
  const schema = bodySchema(operation)
  const fields = only(propertiesOf(operation), (name) => OWN_FIELDS.test(name))
  const parameters = operation.parameters.filter((one) => one.in === 'query')
  const query = only(
    Object.fromEntries(parameters.map((one) => [one.name, valuesOf(one.schema as Schema)])),
    (name) => !QR_OPTIONS.test(name),
  )
  const path = pathSchema(operation)
  return fc
    .record({
      body: schema ? valuesOf({ ...schema, properties: fields }) : fc.constant(undefined),
      query: fc.record(query, { requiredKeys: [] }),
      code: path ? fc.option(valuesOf(path), { freq: 3 }) : fc.constant(null),
    })
    .map(({ body, query, code }) => ({ body, query, ...(code !== null && { code: String(code) }) }))
}

/** Random requests that violate the description in their body, a parameter or the path. */
export function badRequests(operation: Operation): fc.Arbitrary<Sent>[] {
  const schema = bodySchema(operation)
  const path = pathSchema(operation)
  const codes = (schema: Schema) =>
    violationsOf(schema).filter(
      (code) => typeof code === 'string' && code !== '' && !/^\.\.?$/.test(code),
    )
  return [
    ...(schema ? [violationsOf(schema).map((body) => ({ body }))] : []),
    ...strictParameters(operation).map(({ name, schema }) =>
      violatingTexts(schema).map((value) => ({ query: { [name]: value } })),
    ),
    ...(path ? [codes(path).map((code) => ({ code: String(code) }))] : []),
  ]
}

interface Schema {
  type?: string
  enum?: unknown[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  properties?: Record<string, Schema>
  required?: string[]
  nullable?: boolean
  additionalProperties?: boolean
}

type Values = fc.Arbitrary<unknown>

const HOSTS = (
  'пример.рф 漢字.example a_b.example. x!$&.example localhost EXAMPLE.com 192.0.2.1 0300.1 ' +
  '3232235777 [2001:db8::1] [::ffff:192.0.2.1] b%C3%BCcher.example'
).split(' ')

/** http and https URLs that the service accepts, those that are no RFC 3986 URI included. */
const urls: Values = fc.oneof(
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc
    .tuple(
      fc.constantFrom('http', 'https', 'HTTP', 'hTTps'),
      fc.constant('://'),
      fc.constantFrom('', 'user@', 'user:pass@', ':@'),
      fc.oneof(fc.constantFrom(...HOSTS), fc.domain()),
      fc.oneof(
        fc.constant(''),
        fc.nat(65_535).map((port) => `:${port}`),
      ),
      fc.constantFrom('/', '?', '#', '\\'),
      fc.stringMatching(/^[^\p{C}\p{Z}]{0,100}$/u),
    )
    .map((parts) => parts.join('')),
)

/** Longer arrays only cost time. */
const ITEMS_MAX = 12

const NEAR_MISSES = [
  '',
  '0',
  '%00',
  ' ',
  'http://',
  'https://[',
  'http://a b/',
  'ftp://a.example/',
  'https:a',
  'https://a.example:99999/',
  'http:///a',
  ' http://a.example/',
  'http://a.example/\u0000',
]
const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom(...NEAR_MISSES))

/** Of every JSON type: what the schema's own type is filtered out of. */
const anything: Values = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 53, [], {}, '', '__proto__'),
  text,
  fc.jsonValue({ maxDepth: 2 }),
)

/** Values that the schema accepts. */
function valuesOf(schema: Schema): Values {
  const { nullable, ...plain } = schema
  if (nullable) return fc.option(valuesOf(plain), { nil: null })
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'boolean':
      return fc.boolean()
    case 'string':
      return stringsOf(schema)
    case 'number':
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 2 ** 31 - 1 })
    case 'array':
      return fc.array(valuesOf(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(ITEMS_MAX, schema.maxItems ?? ITEMS_MAX),
      })
    case 'object':
      return objectsOf(schema)
    default:
      throw new Error(`no values of ${JSON.stringify(schema)}`)
  }
}

function stringsOf({ pattern, minLength = 0, maxLength = 8192 }: Schema): Values {
  // JSON Schema counts characters, of which some are two units of a string.
  const fits = (value: string) => {
    const { length } = [...value]
    return length >= minLength && length <= maxLength
  }
  // The pattern of a URL is not sufficient: its host must be one that the URL parser accepts.
  if (pattern?.endsWith('://')) return urls
  if (pattern) return fc.stringMatching(new RegExp(pattern, 'u')).filter(fits)
  return fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, 200) })
}

function objectsOf({ properties = {}, required = [], additionalProperties }: Schema): Values {
  const own = Object.entries(properties).map(([name, one]) => [name, valuesOf(one)] as const)
  return fc
    .record({
      values: fc.record(Object.fromEntries(own)),
      without: fc.subarray(Object.keys(properties).filter((name) => !required.includes(name))),
      more:
        additionalProperties === false
          ? fc.constant({})
          : fc.option(fc.dictionary(fc.string(), anything, { maxKeys: 3 }), { freq: 4 }),
    })
    .map(({ values, without, more }) => ({
      ...more,
      ...only(values, (name) => !without.includes(name)),
    }))
}

/** Values that the schema refuses: of another type, or out of one of its bounds. */
function violationsOf(schema: Schema): Values {
  const others = anything.filter((value) => !isOfType(schema, value))
  const unlisted = schema.enum && text.filter((one) => !schema.enum?.includes(one))
  return fc.oneof(others, ...outOfBounds(schema), ...(unlisted ? [unlisted] : []))
}

/** In a query everything is text, which may turn a violation into what the schema accepts. */
const violatingTexts = (schema: Schema): Values =>
  violationsOf(schema).filter(
    (value) =>
      typeof value !== 'object' &&
      !schema.enum?.includes(String(value)) &&
      !(schema.pattern !== undefined && new RegExp(schema.pattern, 'u').test(String(value))) &&
      !(
        /^(integer|number)$/.test(schema.type ?? '') &&
        /^\s*$|^\d+$/.test(String(value)) &&
        typeof value === 'string'
      ),
  )

function outOfBounds(schema: Schema): Values[] {
  const { type, minimum, maximum, minItems, items, properties = {}, required = [] } = schema
  if (type === 'string') return stringsOutOfBounds(schema)
  if (type === 'integer') {
    return [
      ...(minimum === undefined ? [] : [below(minimum)]),
      ...(maximum === undefined ? [] : [above(maximum)]),
      fc.double({ min: minimum ?? 0, noNaN: true }).filter((value) => !Number.isInteger(value)),
    ]
  }
  if (type === 'array' && items) {
    return [
      ...(minItems ? [fc.constant([])] : []),
      // Every item, because the service judges each on its own.
      fc.array(violationsOf(items), { minLength: 1, maxLength: ITEMS_MAX }),
    ]
  }
  if (type !== 'object') return []
  const ofRequired = required.flatMap((name) => [
    withProperty(schema, name, fc.constant(undefined)),
    withProperty(schema, name, violationsOf(properties[name] ?? {})),
  ])
  const isOpen = schema.additionalProperties !== false
  return isOpen ? ofRequired : [...ofRequired, withProperty(schema, 'customSlug', text)]
}

/** Just out of the bound as often as far away. */
const below = (bound: number): Values =>
  fc.oneof(fc.constant(bound - 1), fc.integer({ min: -(2 ** 40), max: bound - 1 }))
const above = (bound: number): Values =>
  fc.oneof(fc.constant(bound + 1), fc.integer({ min: bound + 1, max: 2 ** 53 - 1 }))

function stringsOutOfBounds({ pattern = '', minLength, maxLength }: Schema): Values[] {
  const expression = new RegExp(pattern, 'u')
  const misses = NEAR_MISSES.filter((value) => !expression.test(value))
  return [
    ...(pattern === ''
      ? []
      : [text.filter((value) => !expression.test(value)), fc.constantFrom(...misses)]),
    ...wrongLengths(pattern),
    ...(minLength ? [fc.string({ maxLength: minLength - 1 })] : []),
    ...(maxLength === undefined
      ? []
      : [fc.nat(50).map((more) => 'https://example.com/'.padEnd(maxLength + 1 + more, 'x'))]),
  ]
}

/** Of a pattern that is some characters so many times: one too few, or one too many. */
function wrongLengths(pattern: string): Values[] {
  const [, characters, least, most] = /^\^(\[[^\]]+\])\{(\d+),(\d+)\}\$$/.exec(pattern) ?? []
  if (characters === undefined) return []
  const lengths = [Number(least) - 1, Number(most) + 1]
  return lengths.map((length) => fc.stringMatching(new RegExp(`^${characters}{${length}}$`)))
}

const withProperty = (schema: Schema, name: string, values: Values): Values =>
  fc
    .tuple(objectsOf(schema), values)
    .map(([object, value]) => ({ ...(object as object), [name]: value }))

function isOfType({ type, nullable }: Schema, value: unknown): boolean {
  if (nullable && value === null) return true
  if (type === 'array') return Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'object') {
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  }
  return typeof value === type
}
