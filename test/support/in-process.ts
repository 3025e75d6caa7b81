import {
  type Functions,
  functionService,
  Thread,
  type ThreadOptions,
} from '../../src/lib/thread.ts'

/** The same functions, each free to return a promise. */
type InProcess<Calls extends Functions<Calls>> = {
  [Name in keyof Calls]: (
    args: Parameters<Calls[Name]>[0],
  ) => ReturnType<Calls[Name]> | Promise<Awaited<ReturnType<Calls[Name]>>>
}

/** Runs the functions in the calling thread, with the queue and batches of a `Thread`. */
export function inProcess<Calls extends Functions<Calls>>(
  functions: InProcess<Calls>,
  options: Partial<ThreadOptions> = {},
): Thread<Calls> {
  const { answer } = functionService(functions)
  const reply = (data: unknown) => worker.onmessage?.(new MessageEvent('message', { data }))
  const worker = {
    async postMessage(message: { batch: Parameters<typeof answer>[0] } | { stop: true }) {
      if ('stop' in message) reply({ stopped: true })
      else reply({ outcomes: await answer(message.batch), place: 0 })
    },
    addEventListener() {},
    terminate() {},
  } as Partial<Worker> as Worker
  return new Thread<Calls>(worker, { batchMax: 100, queueMax: 1000, ...options })
}
