import { Elysia } from 'elysia'
import { operation } from '../http/operation.ts'
import { type Answer, toResponse } from './responses.ts'

/**
 * GET /{code} on the control thread. The redirect threads answer most of these requests themselves.
 */
export const redirectRoutes = (follow: (text: string, request: Request) => Answer) =>
  new Elysia({ name: 'redirect' }).get(
    '/:code',
    ({ params, request }) => toResponse(follow(params.code, request)),
    {
      detail: operation({
        id: 'follow',
        summary: 'Follow a short link',
        description: [
          'Counts one hit. Goes on during maintenance. Without an API key, a redirect is charged',
          'to a limit of its own, and an unknown code to that of the other reads.',
        ].join(' '),
        tag: 'Redirects',
        isPublic: true,
        answers: {
          302: {
            description: 'The destination is at `Location`.',
            headers: {
              Location: 'The destination.',
              'Cache-Control': 'How long the response may be cached.',
              'X-Service-Code': 'The code of the redirect.',
              'X-Robots-Tag': '`noindex` for a link with `no_index`.',
            },
          },
        },
        refusals: [410],
      }),
    },
  )
