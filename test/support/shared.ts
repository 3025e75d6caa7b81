import { afterAll } from 'bun:test'

/**
 * Something that the tests of a file share because none of them changes it for another: a service
 * under a table of refusals, a browser. The first test that asks opens it, and the end of the file
 * closes it.
 */
export function shared<Resource extends AsyncDisposable>(
  open: () => Promise<Resource>,
): () => Promise<Resource> {
  let opened: Promise<Resource> | undefined
  afterAll(async () => {
    const resource = await opened?.catch(() => undefined)
    await resource?.[Symbol.asyncDispose]()
  })
  return () => {
    opened ??= open()
    return opened
  }
}
