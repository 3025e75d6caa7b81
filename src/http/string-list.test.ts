import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { hostileJson, JSON_KINDS } from '../../test/abuse/bodies.ts'
import { readStringList } from './string-list.ts'

/** What the reader must find, by way of `JSON.parse`. */
function expected(text: string, itemsMax: number): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'no JSON'
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null
  const [other] = Object.keys(value).filter((name) => name !== 'urls')
  const others = other === undefined ? {} : Object.fromEntries([[other, null]])
  if (!Object.hasOwn(value, 'urls')) return others
  const { urls } = value as { urls: unknown }
  if (!Array.isArray(urls)) return { ...others, urls: null }
  return {
    ...others,
    urls: urls.slice(0, itemsMax).map((one) => (typeof one === 'string' ? one : null)),
  }
}

const found = (text: string, itemsMax: number) =>
  readStringList(Buffer.from(text), 'urls', itemsMax).catch(() => 'no JSON')

const ITEMS_MAX = 3

const texts = [
  '',
  ' ',
  '{}',
  '[]',
  '"urls"',
  'null',
  'nul',
  'nulll',
  'true false',
  '{"urls":["a","b"]}',
  ' \t\r\n{ "urls" : [ "a" , "b" ] } \n',
  '{"urls":["a",1,null,{"urls":["x"]},["y"],"b"]}',
  '{"urls":[["a"],"b"]}',
  '{"urls":[{"a":["b"]},"c"],"x":["d"]}',
  '{"urls":["a"],"urls":["b","c"]}',
  '{"urls":["a"],"urls":5}',
  '{"urls":5,"urls":["a"]}',
  '{"urls":{"urls":["a"]}}',
  '{"x":{"urls":["a"]}}',
  '{"x":[["a"]],"urls":["b"]}',
  '[{"urls":["a"]}]',
  '{"\\u0075rls":["a"]}',
  '{"\\u0075\\u0072\\u006c\\u0073":["a"]}',
  '{"__proto__":{"urls":["a"]},"constructor":1}',
  '{"URLS":["a"]}',
  '{"urls":["\\u00e9\\ud83d\\ude00\\n\\/\\"\\\\é😀\ufeff"]}',
  '{"urls":["\ufeffa","\\ud800"]}',
  '{"urls":["a",]}',
  '{"urls":[,"a"]}',
  '{"urls":["a"],}',
  '{"urls":["a"}',
  '{"urls":["a"]',
  '{"urls":["a"]]',
  '{"urls":["a"]}}',
  '{"urls":["a"]}x',
  '{"urls":["a\n"]}',
  '{"urls":["\\x"]}',
  '{"urls":["\\u12g4"]}',
  '{"urls":["\\u12',
  '{"urls":["a',
  '{"urls"}',
  '{"urls":}',
  '{urls:["a"]}',
  "{'urls':['a']}",
  '{"a":01}',
  '{"a":-}',
  '{"a":-0.0e+10,"b":1E5,"c":0}',
  '{"a":1.}',
  '{"a":.5}',
  '{"a":1e}',
  '{"a":+1}',
  '{"a":0x10}',
  '{"a":NaN}',
  '{"a":"\u007f\u2028"}',
  `${'['.repeat(1000)}${']'.repeat(1000)}`,
  `{"x":${'[{"a":'.repeat(500)}1${'}]'.repeat(500)},"urls":["a"]}`,
  `{"x":${'['.repeat(300)}${'}'.repeat(300)}}`,
]
test.each(texts)('%s is read as JSON.parse reads it', async (text) => {
  expect(await found(text, ITEMS_MAX)).toEqual(expected(text, ITEMS_MAX) as never)
})

const value = fc.oneof(
  fc.json(),
  fc.json().map((json) => `{"urls":${json},"a":${json}}`),
)
const list = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
      fc.json(),
    ),
  )
  .map((items) => `{"urls":[${items.join()}]}`)

test('any document is read as JSON.parse reads it, and so is any that is damaged', async () => {
  const damage = fc.tuple(
    fc.nat(),
    fc.constantFrom('', '"', ',', ':', '[', ']', '{', '}', '\\', '1'),
  )
  await fc.assert(
    fc.asyncProperty(fc.oneof(value, list), fc.option(damage), async (text, damaged) => {
      let sent = text
      if (damaged) {
        const at = damaged[0] % (text.length + 1)
        sent = text.slice(0, at) + damaged[1] + text.slice(at + 1)
      }
      // Surrogates that the damage has torn apart are no UTF-8.
      sent = sent.toWellFormed()
      expect(await found(sent, ITEMS_MAX)).toEqual(expected(sent, ITEMS_MAX) as never)
    }),
    { numRuns: 3000 },
  )
})

/** How often other work of this thread ran until the promise was settled. */
async function ticksDuring(work: Promise<unknown>): Promise<number> {
  let ticks = 0
  let isDone = false
  const count = () => {
    ticks++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await work.finally(() => {
    isDone = true
  })
  return ticks
}

const LARGEST = 2464 * 1024

test.each(JSON_KINDS.filter((kind) => kind !== 'one string' && kind !== 'escapes'))(
  'a hostile document of %s lets other work run, and is not built in memory',
  async (kind) => {
    const bytes = Buffer.from(hostileJson(kind, LARGEST))
    Bun.gc(true)
    const before = heapStats().objectCount
    const read = readStringList(bytes, 'urls', 101).catch(() => 'no JSON')
    expect(await ticksDuring(read)).toBeGreaterThan(bytes.length / (64 * 1024))
    Bun.gc(true)
    expect(heapStats().objectCount - before).toBeLessThan(10_000)
    const document = await read
    if (typeof document === 'string') expect(kind).toBe('list never closed')
    else expect(document?.urls?.length).toBeLessThanOrEqual(101)
  },
)
