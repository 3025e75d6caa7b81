import { Elysia } from 'elysia'
import type { Operations } from '../db/subject.ts'
import { parseWith } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import type { Kit } from '../links/kit.ts'
import { requireOwnedLink } from '../links/update.ts'
import { eventOf, HistoryQuery, HistoryView } from './schema.ts'
import type { history } from './subject.ts'

type Deps = Kit & GuardDeps & { data: { history: Operations<typeof history> } }

export const historyRoutes = (deps: Deps) =>
  new Elysia({ name: 'history', prefix: '/api' }).use(requireKey(deps, 'read')).get(
    '/links/:code/history',
    ({ account, params, query }) => {
      const page = parseWith(HistoryQuery, query)
      const { id } = requireOwnedLink(deps, account, params.code)
      const { events, next } = deps.data.history.pageOfLink({ ...page, id })
      return { items: events.map(eventOf), next }
    },
    described({
      id: 'history',
      summary: 'What was changed about a link, and by whom',
      description:
        'Newest first: the last 400 days, and at most 500 events of a link beside batches. A ' +
        'link that moves to another account takes its history along.',
      query: HistoryQuery,
      answers: { 200: { description: 'A page of events.', view: HistoryView } },
    }),
  )
