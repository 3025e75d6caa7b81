const KINDS = {
  400: 'invalid_request',
  401: 'invalid_api_key',
  403: 'invalid_passcode',
  404: 'not_found',
  409: 'code_in_use',
  410: 'disabled',
  413: 'too_large',
  415: 'invalid_request',
  422: 'not_allowed',
  429: 'rate_limited',
  500: 'internal',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
} as const

export type ErrorKind = (typeof KINDS)[keyof typeof KINDS] | 'unexpected'

/** The service answered with an error. `message` is the service's own text. */
export class HopcodeError extends Error {
  override readonly name = 'HopcodeError'
  readonly status: number
  readonly kind: ErrorKind
  /** Names the request in the service's log. With 5xx responses only. */
  readonly requestId: string | undefined
  /** Seconds after which the service suggests the next attempt. */
  readonly retryAfter: number | undefined

  constructor(
    message: string,
    about: { status: number; requestId?: string | undefined; retryAfter?: number | undefined },
  ) {
    super(message)
    this.status = about.status
    this.kind = KINDS[about.status as keyof typeof KINDS] ?? 'unexpected'
    this.requestId = about.requestId
    this.retryAfter = about.retryAfter
  }
}

/** No answer: the service cannot be reached, or an attempt took longer than `timeoutMs`. */
export class HopcodeNetworkError extends Error {
  override readonly name = 'HopcodeNetworkError'
}
