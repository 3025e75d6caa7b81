import { Elysia } from 'elysia'
import { hasAccess } from '../accounts/keys.ts'
import { AppError } from '../errors.ts'
import { BATCH_BODY_MAX, type RequestBodies, readBody, useBody } from '../http/body.ts'
import { type GuardDeps, publicly, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { longJson, type UnsentResponses } from '../http/unsent.ts'
import { bulk, reserve, shorten } from './create.ts'
import type { Kit } from './kit.ts'
import { changeOf } from './link-change.ts'
import { changeLink, getProperties, lookup } from './properties.ts'
import {
  BulkView,
  bulkBody,
  DeleteBody,
  DeletedView,
  LookupView,
  ManagedLinkBody,
  PropertiesView,
  ReserveBody,
  ReservedView,
  ShortenBody,
  ShortenView,
  UpdateBody,
  UpdatedView,
} from './schema.ts'
import { deleteLink, deleteOwnedLink, update } from './update.ts'

type Deps = Kit & GuardDeps & { bodies: RequestBodies; unsent: UnsentResponses }

export const linkWriteRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.writes' })
    .use(creationRoutes(deps))
    .use(bulkRoutes(deps))
    .use(changeRoutes(deps))

const creationRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.create', prefix: '/api' })
    .use(requireKey(deps, 'create'))
    .post(
      '/shorten',
      async ({ request, account, status }) => {
        const body = await readBody(deps.bodies, request, ShortenBody, account.id)
        const { url, code, ...fields } = body
        const view = await shorten(deps, account, url, {
          code,
          ...changeOf(deps.addresses, fields),
        })
        return status(view.reused ? 200 : 201, view)
      },
      described({
        id: 'shorten',
        summary: 'Shorten a URL',
        description: [
          'Creates a code with a destination and returns its passcode, once. If the account has',
          'a code for this URL, returns that one with `reused: true` and without a passcode, so',
          'a request can be repeated safely. The code, properties and aliases of the request are',
          'those of a new link only.',
        ].join(' '),
        body: ShortenBody,
        answers: {
          200: { description: 'The code that the account has for this URL.', view: ShortenView },
          201: { description: 'A new code, with its passcode.', view: ShortenView },
        },
        refusals: [409, 422],
      }),
    )
    .post(
      '/reserve',
      async ({ request, account, status }) => {
        const body = await readBody(deps.bodies, request, ReserveBody, account.id)
        const { code, ...fields } = body
        return status(201, await reserve(deps, account, code, changeOf(deps.addresses, fields)))
      },
      described({
        id: 'reserve',
        summary: 'Claim a code without a destination',
        description: [
          'Visitors get 404 until `update` gives the code a destination, so a QR code can be',
          'printed before its page exists. The passcode is returned once.',
        ].join(' '),
        body: ReserveBody,
        answers: { 201: { description: 'The code, with its passcode.', view: ReservedView } },
        refusals: [409, 422],
      }),
    )

const changeRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.change', prefix: '/api' })
    .use(requireKey(deps, 'change'))
    .post(
      '/update',
      async ({ request, account }) => {
        const change = await readBody(deps.bodies, request, UpdateBody, account.id)
        return update(deps, account, change)
      },
      described({
        id: 'update',
        summary: 'Change the destination of a code',
        description: [
          'Needs the passcode of the code. Takes effect immediately, also for QR codes already',
          'printed. Sending the same change again is safe.',
        ].join(' '),
        body: UpdateBody,
        answers: { 200: { description: 'The destination is changed.', view: UpdatedView } },
        refusals: [422],
      }),
    )
    .post(
      '/delete',
      async ({ request, account }) => {
        const named = await readBody(deps.bodies, request, DeleteBody, account.id)
        return deleteLink(deps, account, named)
      },
      described({
        id: 'deleteLink',
        summary: 'Delete a code',
        description: 'The short URL stops working at once, and anyone may claim the code.',
        body: DeleteBody,
        answers: { 200: { description: 'The code is gone.', view: DeletedView } },
      }),
    )

/** The document, its list, and room for unknown fields, so that the refusal names one. */
const VALUES_BESIDE_URLS = 100

const bulkRoutes = (deps: Deps) => {
  const { free, pro, enterprise } = deps.plans
  // Created once: creating a schema takes as long as validating a thousand items.
  const bulkBodies = {
    free: bulkBody(free.bulkMax),
    pro: bulkBody(pro.bulkMax),
    enterprise: bulkBody(enterprise.bulkMax),
  }
  return new Elysia({ name: 'links.bulk', prefix: '/api' }).use(requireKey(deps, 'create')).post(
    '/bulk-shorten',
    async ({ request, account }) => {
      const { bulkMax } = deps.plans[account.plan]
      const schema = bulkBodies[account.plan]
      const limits = { bytesMax: BATCH_BODY_MAX, valuesMax: bulkMax + VALUES_BESIDE_URLS }
      const use = { bodies: deps.bodies, request, schema, holder: account.id, ...limits }
      return await useBody(use, async ({ urls }, requireHeld) =>
        longJson(await bulk(deps, account, urls, requireHeld), 201),
      )
    },
    described({
      id: 'bulkShorten',
      summary: 'Shorten many URLs',
      description: [
        'Returns one result for each URL, in order; an invalid URL fails alone. The whole batch',
        'is one request of the budget, of at most 8 MiB. The number of URLs depends on the plan.',
      ].join(' '),
      body: bulkBody(Math.max(...Object.values(deps.plans).map(({ bulkMax }) => bulkMax))),
      answers: { 201: { description: 'One result a URL, in order.', view: BulkView } },
      refusals: [422],
    }),
  )
}

export const linkLookupRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.lookup', prefix: '/api' }).use(publicly(deps, { budget: 'read' })).get(
    '/lookup/:code',
    ({ params }) => lookup(deps, params.code),
    described({
      id: 'lookup',
      summary: 'The destination of a code, without following it',
      description: 'Needs no API key and counts no hit. `url` is null for a reserved code.',
      isPublic: true,
      answers: { 200: { description: 'The code.', view: LookupView } },
    }),
  )

/** A link of the account with its optional properties. */
export const linkPropertyRoutes = (deps: Deps) =>
  new Elysia({ name: 'links.properties' })
    .use(propertyReads(deps))
    .use(propertyChanges(deps))
    .use(deletionRoute(deps))

const propertyReads = (deps: Deps) =>
  new Elysia({ name: 'links.properties.read', prefix: '/api' }).use(requireKey(deps, 'read')).get(
    '/links/:code',
    ({ account, params }) => getProperties(deps, account, params.code),
    described({
      id: 'getLink',
      summary: 'A link of the account with its properties',
      description: 'A property that is not set is null. Links of other accounts are not found.',
      answers: { 200: { description: 'The link.', view: PropertiesView } },
    }),
  )

const propertyChanges = (deps: Deps) =>
  new Elysia({ name: 'links.properties.change', prefix: '/api' })
    .use(requireKey(deps, 'change'))
    .patch(
      '/links/:code',
      async ({ request, account, params: { code } }) => {
        const body = await readBody(deps.bodies, request, ManagedLinkBody, account.id)
        const { url, ...fields } = body
        if (url !== undefined && !hasAccess(account, 'manage'))
          throw new AppError('manage_key_needed')
        await changeLink(deps, account, code, { url, ...changeOf(deps.addresses, fields) })
        return getProperties(deps, account, code)
      },
      described({
        id: 'patchLink',
        summary: 'Change properties and aliases of a link',
        description:
          'Null clears a property; an absent one stays. `update` changes the destination; only ' +
          'a key with the access `manage` can do so here. If one change is refused, nothing is ' +
          'changed.',
        body: ManagedLinkBody,
        answers: { 200: { description: 'The changed link.', view: PropertiesView } },
        refusals: [409, 422],
      }),
    )

const deletionRoute = (deps: Deps) =>
  new Elysia({ name: 'links.manage', prefix: '/api' }).use(requireKey(deps, 'manage')).delete(
    '/links/:code',
    ({ account, params }) => deleteOwnedLink(deps, account, params.code),
    described({
      id: 'deleteOwnLink',
      summary: 'Delete a link of the account, without its passcode',
      description: 'Only with a key with the access `manage`. Otherwise the same as `deleteLink`.',
      answers: { 200: { description: 'The code is gone.', view: DeletedView } },
      refusals: [403],
    }),
  )
