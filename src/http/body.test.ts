import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { z } from 'zod'
import { RequestBodies, SMALL_BODY_MAX, useBody } from './body.ts'

const CHUNKS = 50_000

/** A body sent byte by byte; `meanwhile` runs before the last byte. */
function inBytes(meanwhile = () => {}): Request {
  async function* body() {
    for (let sent = 1; sent <= CHUNKS; sent++) {
      if (sent === CHUNKS) meanwhile()
      yield new Uint8Array([97])
    }
  }
  return new Request('http://hop.test/', { method: 'POST', body: body() })
}

test('a body sent byte by byte arrives complete, and its chunks are not kept', async () => {
  let kept = Number.POSITIVE_INFINITY
  const request = inBytes(() => {
    Bun.gc(true)
    kept = heapStats().objectTypeCounts.Uint8Array ?? 0
  })
  using body = await new RequestBodies().read(request, { holder: 1, bytesMax: CHUNKS })
  expect(new TextDecoder().decode(body.bytes)).toBe('a'.repeat(CHUNKS))
  expect(kept).toBeLessThan(CHUNKS / 10)
})

test('a body is read up to the last byte that is allowed, and not beyond', async () => {
  const bodies = new RequestBodies()
  const limits = { holder: 1, bytesMax: CHUNKS - 1 }
  await expect(bodies.read(inBytes(), limits)).rejects.toThrow('48 KiB')
  const none = new Request('http://hop.test/', { method: 'POST' })
  using body = await bodies.read(none, { holder: 1, bytesMax: 0 })
  expect(body.bytes).toHaveLength(0)
})

function inPieces(pieces: readonly Uint8Array<ArrayBuffer>[]): Request {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  return new Request('http://hop.test/', { method: 'POST', body })
}

const newPieces = () => Array.from({ length: 3 }, () => new Uint8Array(100_000).fill(97))

test('the memory of a large body is freed piece by piece, and when it is disposed', async () => {
  const pieces = newPieces()
  const body = await new RequestBodies().read(inPieces(pieces), { holder: 1, bytesMax: 400_000 })
  expect(body.bytes.every((byte) => byte === 97)).toBe(true)
  expect(body.bytes).toHaveLength(300_000)
  expect(pieces.map(({ length }) => length)).toEqual([0, 0, 0])
  body[Symbol.dispose]()
  expect(body.bytes).toHaveLength(0)
})

test('a piece that shares its buffer with others is left', async () => {
  const [whole] = newPieces() as [Uint8Array<ArrayBuffer>]
  const pieces = [whole.subarray(0, 40_000), whole.subarray(40_000)]
  using body = await new RequestBodies().read(inPieces(pieces), { holder: 1, bytesMax: 400_000 })
  expect(body.bytes).toHaveLength(100_000)
  expect(whole).toHaveLength(100_000)
})

/** The values of a document; a list or object without any counts as if it had one. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  const values = Object.values(value).map(valuesIn)
  return 1 + (values.length === 0 ? 1 : values.reduce((sum, one) => sum + one))
}

test('a large document is parsed if it has no more values than it may have, whatever its texts are', async () => {
  const headers = { 'content-type': 'application/json' }
  const read = (text: string, valuesMax: number) => {
    const body = text.padEnd(SMALL_BODY_MAX + 1)
    const request = new Request('http://hop.test/', { method: 'POST', headers, body })
    const limits = { bytesMax: 2 ** 20, valuesMax }
    const use = { bodies: new RequestBodies(), request, schema: z.unknown(), holder: 1, ...limits }
    return useBody(use, async (value) => value)
  }
  const texts = ['"', '\\', '\\"', '[', '{,', ',', 'a', '\u{1f600}']
  const odd = fc.string({ unit: fc.constantFrom(...texts), maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(fc.json({ stringUnit: 'binary' }), odd, async (json, text) => {
      const document = JSON.stringify({ [text]: [text, JSON.parse(json)] })
      const parsed = JSON.parse(document)
      const count = valuesIn(parsed)
      expect(await read(document, count)).toEqual(parsed)
      expect(await read(document, count - 1)).toBeUndefined()
    }),
    { numRuns: 500 },
  )
})

test('a body counts while its texts are used, and yields to one of another account', async () => {
  const bodies = new RequestBodies()
  const useText = <Result>(
    holder: number,
    mebibytes: number,
    work: (text: unknown, requireHeld: () => void) => Promise<Result>,
  ) => {
    const body = JSON.stringify('x'.repeat(mebibytes * 2 ** 20))
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://hop.test', { method: 'POST', headers, body })
    return useBody({ bodies, request, schema: z.string(), holder, bytesMax: 2 ** 26 }, work)
  }
  const read = async () => 'read'
  const used = useText(1, 30, async (_, requireHeld) => {
    requireHeld()
    expect(await useText(2, 20, read)).toBe('read')
    requireHeld()
  })
  expect(used).rejects.toThrow(expect.objectContaining({ code: 'overloaded' }))
  await used.catch(() => {})
  expect(await useText(1, 30, read)).toBe('read')
})
