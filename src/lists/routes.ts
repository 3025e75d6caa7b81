import { Elysia } from 'elysia'
import { parseWith } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { longJson, type UnsentResponses } from '../http/unsent.ts'
import type { ListKit } from './export.ts'
import { ListQuery, ListView, OwnListQuery, OwnListView } from './schema.ts'
import { list, listWithProperties } from './views.ts'

type Deps = ListKit & GuardDeps & { unsent: UnsentResponses }

export const listRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.list', prefix: '/api' }).use(requireKey(deps, 'read')).get(
    '/list',
    async ({ account, query, request }) => {
      return longJson(await list(deps, account, parseWith(ListQuery, query), request.signal))
    },
    described({
      id: 'listLinks',
      summary: "The account's codes, newest first",
      description: [
        'Never contains passcodes. `total` is the number of all codes that match, so `offset`',
        'can go from page to page.',
      ].join(' '),
      query: ListQuery,
      answers: { 200: { description: 'A page of codes.', view: ListView } },
    }),
  )

/** Links with their properties. */
export const ownListRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.own', prefix: '/api' }).use(requireKey(deps, 'read')).get(
    '/links',
    async ({ account, query, request }) => {
      const parsed = parseWith(OwnListQuery, query)
      return longJson(await listWithProperties(deps, account, parsed, request.signal))
    },
    described({
      id: 'listOwnLinks',
      summary: 'Links of the account with their properties, newest first',
      description: 'As `list`, with properties and aliases, which the search covers too.',
      query: OwnListQuery,
      answers: { 200: { description: 'A page of links.', view: OwnListView } },
    }),
  )
