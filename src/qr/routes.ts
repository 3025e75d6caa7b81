import { Elysia } from 'elysia'
import { z } from 'zod'
import type { Addressed } from '../addresses/names.ts'
import { parseQrOptions, QrQuery } from '../draw/options.ts'
import { AppError } from '../errors.ts'
import type { Client } from '../hot/client-address.ts'
import { NO_LINK } from '../hot/destination-cache.ts'
import { clientOf, type ResponseState } from '../http/context.ts'
import { describeBudget, type GuardDeps, publicly, rateLimited } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { DestinationReads } from '../links/destination.ts'
import type { Kit } from '../links/kit.ts'
import type { KnownCodes } from '../links/known-codes.ts'
import { getLink } from '../links/properties.ts'
import type { QrImages } from './images.ts'

type QrDeps = Kit &
  GuardDeps & { destinations: DestinationReads; codes: KnownCodes; images: QrImages }

const Uri = z.string().meta({ format: 'uri' })

const QrImageView = z
  .object({
    code: z.string().regex(/^[A-Z0-9]{6,20}$/),
    url: z.string().nullable(),
    short_url: Uri,
    qr_url: Uri,
    qr_storage_url: Uri,
  })
  .meta({ id: 'QrAddresses' })
type QrImageView = z.infer<typeof QrImageView>

const IMAGE_CACHING = 'public, max-age=86400, immutable'
/** The logo may change. */
const LOGO_CACHING = 'public, max-age=3600'
const CACHED = { 'Cache-Control': 'How long the response may be cached.' }
const TYPES = { png: 'image/png', svg: 'image/svg+xml', pdf: 'application/pdf' } as const

export const qrApiRoutes = (deps: QrDeps) =>
  new Elysia({ name: 'qr.api', prefix: '/api' })
    .use(publicly(deps, { budget: 'read' }))
    .get(
      '/qr/:code',
      async ({ params, query, request, set }) => {
        const options = parseQrOptions(query)
        const link = getAddressed(deps, params.code)
        const image = await deps.images.render(link, options, clientOf(deps.address, request))
        set.headers['cache-control'] = options.logo ? LOGO_CACHING : IMAGE_CACHING
        set.headers['content-type'] = TYPES[options.format]
        return new Response(image)
      },
      described({
        id: 'qr',
        summary: 'A QR image of the short URL',
        description: [
          'Needs no API key. The image is rendered with the options of the query; its content',
          'stays the same when the destination changes.',
        ].join(' '),
        tag: 'QR codes',
        isPublic: true,
        query: QrQuery,
        answers: {
          200: {
            description: 'The image.',
            binary: [TYPES.png, TYPES.svg],
            headers: CACHED,
          },
        },
      }),
    )
    .get(
      '/qr-image/:code',
      ({ params }) => qrImage(deps, params.code),
      described({
        id: 'qrImage',
        summary: 'URLs of a code and its images',
        description: 'Needs no API key. For programs that show the image instead of storing it.',
        tag: 'QR codes',
        isPublic: true,
        answers: { 200: { description: 'The URLs.', view: QrImageView } },
      }),
    )

export const qrRedirectRoutes = (deps: QrDeps) =>
  new Elysia({ name: 'qr.redirect' })
    .use(publicly(deps, { budget: 'read', duringMaintenance: true }))
    .get(
      '/qr/:code',
      ({ params, set }) => {
        set.headers.location = deps.addresses.qrStorage(getAddressed(deps, params.code))
        set.headers['cache-control'] = 'public, max-age=31536000, immutable'
        return new Response(null, { status: 302 })
      },
      described({
        id: 'qrStorage',
        summary: 'Redirects to the stored QR image',
        description: [
          'Needs no API key and works during maintenance. The stored image is a PNG with the',
          'default options, and may be cached forever.',
        ].join(' '),
        tag: 'QR codes',
        isPublic: true,
        answers: {
          302: {
            description: 'The image is at `Location`.',
            headers: { Location: 'The address of the stored image.', ...CACHED },
          },
        },
      }),
    )

/**
 * Serves the stored images under /cdn, for a `CDN_URL` that points to this service. A stored image
 * costs no budget, because a caching proxy fetches thousands of them. An unknown code and an image
 * that must be rendered cost a read of the address: otherwise codes could be guessed here without a
 * limit. An API key has no effect: clients of images have none.
 */
export const qrFileRoutes = (deps: QrDeps) =>
  new Elysia({ name: 'qr.files' }).get('/cdn/qr/:file', async ({ params, request, set }) => {
    const { file } = params
    // Copied, because other requests arrive during the wait.
    const client = clientOf(deps.address, request)
    const caller = { client, set: set as ResponseState }
    if (!file.endsWith('.png')) {
      spendRead(deps, caller)
      throw new AppError('path_not_found')
    }
    const name = file.slice(0, -'.png'.length)
    let image = await deps.images.find(getStored(deps, name, caller))
    if (!image) {
      spendRead(deps, caller)
      // Checked again when it is drawn: the image of a code deleted meanwhile would stay forever.
      image = await deps.images.create(() => getAddressed(deps, name), client)
    }
    set.headers['cache-control'] = IMAGE_CACHING
    set.headers['content-type'] = TYPES.png
    return new Response(image)
  })

interface FileCaller {
  client: Client
  set: ResponseState
}

/** The link of a code, at no cost to the budget. Throws `code_not_found` or `rate_limited`. */
function getStored(deps: QrDeps, text: string, caller: FileCaller): Addressed {
  const { codes } = deps
  const code = toCode(text)
  if (code !== undefined && codes.mayExist(code)) {
    const found = findAddressed(deps, code)
    if (found) return found
    codes.prepare()
  }
  spendRead(deps, caller)
  throw new AppError('code_not_found', text.toUpperCase())
}

function spendRead({ limiter }: QrDeps, { client, set }: FileCaller): void {
  const budget = limiter.take('read', undefined, client)
  describeBudget(budget, set)
  if (!budget.allowed) throw rateLimited(budget)
}

/** A disabled code of a deleted link has a destination but no link. */
function findAddressed({ destinations }: QrDeps, code: Code): Addressed | undefined {
  const destination = destinations.findByCode(code)
  if (!destination || destination.id === NO_LINK) return undefined
  return { code, domainId: destination.domainId }
}

/** The link of an existing code. Throws `code_not_found`. */
function getAddressed(deps: QrDeps, text: string): Addressed {
  const code = toCode(text)
  const found = code && findAddressed(deps, code)
  if (!found) throw new AppError('code_not_found', text.toUpperCase())
  return found
}

function qrImage(deps: QrDeps, text: string): QrImageView {
  const link = getLink(deps, text)
  const { addresses } = deps
  return {
    code: link.code,
    url: deps.data.links.publicUrlOf(link),
    short_url: addresses.short(link),
    qr_url: addresses.qr(link),
    qr_storage_url: addresses.qrStorage(link),
  }
}
