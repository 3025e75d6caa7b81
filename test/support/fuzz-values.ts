/**
 * JSON Schema, as OpenAPI 3.0 writes it, to values that it takes and to values that it does not. It
 * knows what the service's own document uses, and throws on anything else.
 */

import fc from 'fast-check'

export interface Schema {
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

const HOSTS = [
  'пример.рф',
  '漢字.example',
  'a_b.example.',
  'x!$&.example',
  'localhost',
  'EXAMPLE.com',
  '192.0.2.1',
  '0300.1',
  '3232235777',
  '[2001:db8::1]',
  '[::ffff:192.0.2.1]',
  'b%C3%BCcher.example',
]
const part = fc.stringMatching(/^[^\p{C}\p{Z}]{0,100}$/u)

/** http and https URLs that the service accepts, those that are no RFC 3986 URI included. */
const urls: Values = fc.oneof(
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc
    .record({
      scheme: fc.constantFrom('http', 'https', 'HTTP', 'hTTps'),
      user: fc.constantFrom('', 'user@', 'user:pass@', ':@'),
      host: fc.oneof(fc.constantFrom(...HOSTS), fc.domain()),
      port: fc.oneof(
        fc.constant(''),
        fc.nat(65_535).map((port) => `:${port}`),
      ),
      rest: fc.tuple(fc.constantFrom('/', '?', '#', '\\'), part).map((texts) => texts.join('')),
    })
    .map(({ scheme, user, host, port, rest }) => `${scheme}://${user}${host}${port}${rest}`),
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

/** Values that the schema takes. */
export function valuesOf(schema: Schema): Values {
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
  const isOpen = additionalProperties !== false
  const own = Object.entries(properties).map(([name, one]) => [name, valuesOf(one)] as const)
  const optional = Object.keys(properties).filter((name) => !required.includes(name))
  return fc
    .record({
      values: fc.record(Object.fromEntries(own)),
      without: fc.subarray(optional),
      more: isOpen
        ? fc.option(fc.dictionary(fc.string(), anything, { maxKeys: 3 }), { freq: 4 })
        : fc.constant({}),
    })
    .map(({ values, without, more }) => {
      const kept = Object.entries(values).filter(([name]) => !without.includes(name))
      return { ...more, ...Object.fromEntries(kept) }
    })
}

/** Values that the schema does not take: of another type, or out of one of its bounds. */
export function violationsOf(schema: Schema): Values {
  const others = anything.filter((value) => !isOfType(schema, value))
  const out = fc.oneof(others, ...outOfBounds(schema))
  return schema.enum
    ? fc.oneof(
        out,
        text.filter((one) => !schema.enum?.includes(one)),
      )
    : out
}

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

/** Of a pattern that is some characters so many times: one too few, or one too many. */
function wrongLengths(pattern: string): Values[] {
  const [, characters, least, most] = /^\^(\[[^\]]+\])\{(\d+),(\d+)\}\$$/.exec(pattern) ?? []
  if (characters === undefined) return []
  const lengths = [Number(least) - 1, Number(most) + 1]
  return lengths.map((length) => fc.stringMatching(new RegExp(`^${characters}{${length}}$`)))
}

function stringsOutOfBounds({ pattern, minLength, maxLength }: Schema): Values[] {
  const expression = pattern === undefined ? undefined : new RegExp(pattern, 'u')
  return [
    ...(expression
      ? [
          text.filter((value) => !expression.test(value)),
          fc.constantFrom(...NEAR_MISSES.filter((value) => !expression.test(value))),
        ]
      : []),
    ...wrongLengths(pattern ?? ''),
    ...(minLength ? [fc.string({ maxLength: minLength - 1 })] : []),
    ...(maxLength === undefined
      ? []
      : [fc.nat(50).map((more) => 'https://example.com/'.padEnd(maxLength + 1 + more, 'x'))]),
  ]
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
