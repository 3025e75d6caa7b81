import { messageOf } from './thread.ts'

interface ListenFailure {
  host: string
  port: number
  cause: unknown
  /** One of the ports of a service with https, which are below 1024. */
  isHttps?: boolean
}

const NO_CAPABILITY =
  'Permission denied. Give the program CAP_NET_BIND_SERVICE, or set HTTPS_PORT and PORT and map ' +
  'the ports'

/** A port cannot be opened, for example because it is in use. */
export class ListenError extends Error {
  override readonly name = 'ListenError'

  constructor({ host, port, cause, isHttps = false }: ListenFailure) {
    const isForbidden = isHttps && (cause as { code?: unknown }).code === 'EACCES'
    const reason = isForbidden ? NO_CAPABILITY : messageOf(cause)
    super(`cannot listen on ${host}:${port}: ${reason}`)
  }
}
