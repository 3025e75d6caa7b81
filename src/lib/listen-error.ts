import { messageOf } from './thread.ts'

/** A port cannot be opened, for example because it is in use. */
export class ListenError extends Error {
  override readonly name = 'ListenError'

  constructor(host: string, port: number, cause: unknown) {
    super(`cannot listen on ${host}:${port}: ${messageOf(cause)}`)
  }
}
