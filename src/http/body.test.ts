import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { RequestBodies } from './body.ts'

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
  using body = await new RequestBodies().read(request, { owner: 1, bytesMax: CHUNKS })
  expect(new TextDecoder().decode(body.bytes)).toBe('a'.repeat(CHUNKS))
  expect(kept).toBeLessThan(CHUNKS / 10)
})

test('a body is read up to the last byte that is allowed, and not beyond', async () => {
  const bodies = new RequestBodies()
  const limits = { owner: 1, bytesMax: CHUNKS - 1 }
  await expect(bodies.read(inBytes(), limits)).rejects.toThrow('48 KiB')
  const none = new Request('http://hop.test/', { method: 'POST' })
  using body = await bodies.read(none, { owner: 1, bytesMax: 0 })
  expect(body.bytes).toHaveLength(0)
})
