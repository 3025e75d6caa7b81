import { Elysia } from 'elysia'
import { type RequestBodies, readBody } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { operation } from '../http/operation.ts'
import {
  changeAliases,
  changeProperties,
  getProperties,
  type PropertiesDeps,
} from './properties.ts'
import { LinkBody, PropertiesView } from './property-models.ts'

interface Deps extends PropertiesDeps, GuardDeps {
  bodies: RequestBodies
}

/** A link of the account with its optional properties. */
export const linkPropertyRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.properties' }).use(readRoutes(deps)).use(changeRoutes(deps))

const readRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.properties.read', prefix: '/api' })
    .use(requireKey(deps, 'read'))
    .get('/links/:code', ({ account, params }) => getProperties(deps, account, params.code), {
      detail: operation({
        id: 'getLink',
        summary: 'A link of the account with its properties',
        description: 'A property that is not set is null. Links of other accounts are not found.',
        tag: 'Links',
        key: true,
        code: true,
        answers: { 200: { description: 'The link.', view: PropertiesView } },
        refusals: [401, 404, 503],
      }),
    })

const changeRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.properties.change', prefix: '/api' })
    .use(requireKey(deps, 'write'))
    .patch(
      '/links/:code',
      async ({ request, account, params: { code } }) => {
        const { aliases: paths, ...change } = await readBody(
          deps.bodies,
          request,
          LinkBody,
          account.id,
        )
        await changeProperties(deps, account, [code], change)
        if (paths) await changeAliases(deps, account, { code, paths })
        return getProperties(deps, account, code)
      },
      {
        detail: operation({
          id: 'patchLink',
          summary: 'Change properties and aliases of a link',
          description:
            'Null clears a property; an absent one stays. `update` changes the destination. ' +
            'Aliases are changed last: if they are refused, the properties are changed.',
          tag: 'Links',
          key: true,
          code: true,
          body: LinkBody,
          answers: { 200: { description: 'The changed link.', view: PropertiesView } },
          refusals: [400, 401, 403, 404, 409, 413, 415, 422, 503],
        }),
      },
    )
