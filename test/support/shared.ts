import { afterAll } from 'bun:test'
import { type TestApp, testApp } from './app.ts'

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

/** A service for all tests of a file, with what `prepare` leaves in it. */
export function sharedApp<Prepared extends object>(
  prepare: (app: TestApp) => Promise<Prepared>,
  options?: Parameters<typeof testApp>[0],
): () => Promise<Prepared & AsyncDisposable & { app: TestApp }> {
  return shared(async () => {
    const app = await testApp(options)
    const prepared = await prepare(app)
    return Object.assign(prepared, { app, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() })
  })
}
