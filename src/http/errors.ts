import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import type { Log } from '../lib/log.ts'
import { newRequestId, REQUEST_ID, type ResponseState } from './context.ts'

/** A request for which there is no route. */
export interface UnmatchedRequest {
  request: Request
  path: string
  set: ResponseState
}

interface Failure {
  refusal: AppError
  requestId: string
  request: Request
  path: string
}

interface ErrorDeps {
  log: Log
  /** The response to a request without a route, if it is not refused. */
  answerUnmatched: (unmatched: UnmatchedRequest) => Response | Promise<Response>
  /** The response to a failure under a path with pages or with the API of another service. */
  findAnswer?: (failure: Failure) => Response | undefined
}

/**
 * Turns everything that is thrown into the spec's JSON. The only `onError` that responds: an
 * internal error is logged here, once.
 */
export const errorResponses = (deps: ErrorDeps) =>
  new Elysia({ name: 'http.errors' }).onError(
    { as: 'global' },
    async ({ error, code, path, request, set: sent }) => {
      const { log, answerUnmatched, findAnswer } = deps
      const set = sent as ResponseState & { status?: number }
      const { headers } = set
      let thrown: unknown = error
      if (code === 'NOT_FOUND') {
        try {
          const answer = await answerUnmatched({ request, path, set })
          set.status = answer.status
          return answer
        } catch (refused) {
          thrown = refused
        }
      }
      const refusal = toRefusal(thrown)
      headers[REQUEST_ID] ??= newRequestId()
      // The handler may have set that of its own response before it failed.
      headers['cache-control'] = 'no-store'
      const requestId = String(headers[REQUEST_ID])
      if (refusal.code === 'internal') {
        const fields = { request_id: requestId, method: request.method, path: logPath(path) }
        log.error('request.failed', fields, thrown)
      }
      const answer = findAnswer?.({ refusal, requestId, request, path })
      if (answer) {
        // Metrics read `set.status`, so copy it from the Response.
        set.status = answer.status
        return answer
      }
      Object.assign(headers, refusal.headers)
      set.status = refusal.status
      return refusal.status >= 500
        ? { error: refusal.message, request_id: requestId, ...refusal.fields }
        : { error: refusal.message }
    },
  )

const toRefusal = (error: unknown): AppError =>
  error instanceof AppError ? error : new AppError('internal')

/** A request's path without the secret of a one-time link. */
const logPath = (path: string): string =>
  path.replace(/^(\/+app\/+(?:setup|join|reset)\/+).*$/i, '$1…')
