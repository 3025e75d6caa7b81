import type { Hold } from './byte-budget.ts'

/**
 * A body that is generated while it is sent: the next chunk is read when the previous one has been
 * sent, so that chunks do not accumulate. `hold` ends with the body. Throws if the first chunk
 * cannot be read, so that the response has the right status.
 */
export async function generatedBody(
  chunks: AsyncGenerator<string, void, undefined>,
  hold: Hold,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder()
  const next = async () => {
    let isLast = true
    try {
      const chunk = await chunks.next()
      isLast = chunk.done === true
      return chunk
    } finally {
      // Also after a failed read, which ends the stream.
      if (isLast) hold[Symbol.dispose]()
    }
  }
  let first: IteratorResult<string, void> | undefined = await next()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = first ?? (await next())
        first = undefined
        if (done) return controller.close()
        controller.enqueue(encoder.encode(value))
      },
      async cancel() {
        hold[Symbol.dispose]()
        await chunks.return()
      },
    },
    { highWaterMark: 1 },
  )
}
