import { Elysia } from 'elysia'
import { z } from 'zod'
import { described } from '../http/operation.ts'
import type { ControlFollower } from './control.ts'
import { toResponse } from './responses.ts'

const PasswordView = z.object({ error: z.string() }).meta({ id: 'PasswordRefusal' })

/**
 * GET /{code} on the control thread. The redirect threads answer most of these requests themselves.
 */
export const redirectRoutes = (follow: Pick<ControlFollower, 'answer'>) =>
  new Elysia({ name: 'redirect' }).get(
    '/:code',
    async ({ path, request }) => toResponse(await follow.answer(path, request)),
    described({
      id: 'follow',
      summary: 'Follow a short link',
      description: [
        'Counts one hit. Goes on during maintenance. Without an API key, a redirect is charged',
        'to a limit of its own, and an unknown code to that of the other reads. A link with a',
        'password answers 401 until it is sent as `Authorization: Basic`, with any user name, or',
        'as the field `password` of a form, by POST. With `+` behind the code, the response is',
        'that of a lookup with 200, or a page for a browser: it is charged as a read, and no hit',
        'is counted.',
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
        401: {
          description: 'The link needs a password.',
          view: PasswordView,
          headers: { 'WWW-Authenticate': 'The scheme Basic, unless a browser asks.' },
        },
        403: { description: 'The password is wrong.', view: PasswordView },
      },
      refusals: [410],
    }),
  )
