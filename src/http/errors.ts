import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import type { Log } from '../lib/log.ts'
import type { RequestIds } from './request-id.ts'
import { shownPath } from './shown-path.ts'

export const REQUEST_ID = 'x-request-id'

interface ErrorDeps {
  log: Log
  requestIds: RequestIds
  /** Judges a request that no route took. Always throws. */
  refuseUnrouted: (arrival: Unrouted) => never
  /** The page for a failure under a path that has pages; undefined where answers are JSON. */
  findPage?: (failure: Failed) => Response | undefined
}

interface Failed {
  refusal: AppError
  requestId: string
  request: Request
  path: string
}

/** Where an answer's headers gather, whether it succeeds or not. */
export interface Headed {
  headers: Record<string, string | number>
}

export interface Unrouted {
  request: Request
  path: string
  set: Headed
}

/**
 * Turns whatever is thrown into the spec's JSON. The only `onError`: a failure of ours is logged
 * here, once.
 */
export const errorAnswers = ({ log, requestIds, refuseUnrouted, findPage }: ErrorDeps) =>
  new Elysia({ name: 'http.errors' }).onError({ as: 'global' }, ({ error, code, ...context }) => {
    const { set, path, request } = context
    const headers = (set as Headed).headers
    const refusal =
      code === 'NOT_FOUND'
        ? caught(() => refuseUnrouted({ request, path, set: set as Headed }))
        : toRefusal(error)
    headers[REQUEST_ID] ??= requestIds.next()
    const requestId = String(headers[REQUEST_ID])
    if (refusal.code === 'internal') {
      const shown = shownPath(path)
      log.error(
        'request.failed',
        { request_id: requestId, method: request.method, path: shown },
        error,
      )
    }
    const page = findPage?.({ refusal, requestId, request, path })
    if (page) {
      // Of an answer made here, whoever counts answers sees no more than this.
      set.status = page.status
      return page
    }
    Object.assign(headers, refusal.headers)
    set.status = refusal.status
    return refusal.status >= 500
      ? { error: refusal.message, request_id: requestId, ...refusal.fields }
      : { error: refusal.message }
  })

function toRefusal(error: unknown): AppError {
  return error instanceof AppError ? error : new AppError('internal')
}

function caught(refuse: () => never): AppError {
  try {
    return refuse()
  } catch (error) {
    return toRefusal(error)
  }
}
