import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { type Destination, NO_LINK } from '../hot/destination-cache.ts'
import type { Headed } from '../http/errors.ts'
import { describeLimit, type GuardDeps, publicly, rateLimited } from '../http/guard.ts'
import { operation } from '../http/operation.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { AddressKey } from '../limits/budgets.ts'
import type { LinkCache } from '../links/cache.ts'
import type { PublicUrls } from '../links/link.ts'
import { getLink, type LinkReads } from '../links/read.ts'
import type { QrImages } from './images.ts'
import { parseQrOptions, QrQuery } from './options.ts'
import { QrImageView } from './schema.ts'

interface QrDeps extends GuardDeps {
  reads: LinkReads
  cache: LinkCache
  images: QrImages
  addresses: PublicUrls
}

const IMAGE_CACHING = 'public, max-age=86400, immutable'
const TYPES = { png: 'image/png', svg: 'image/svg+xml' } as const

export const qrApiRoutes = (deps: QrDeps) =>
  new Elysia({ name: 'qr.api', prefix: '/api' })
    .use(publicly(deps, { budget: 'read' }))
    .get(
      '/qr/:code',
      async ({ params, query, set }) => {
        const options = parseQrOptions(query)
        const code = getCode(deps, params.code)
        const image = await deps.images.render(code, options)
        set.headers['cache-control'] = IMAGE_CACHING
        set.headers['content-type'] = TYPES[options.format]
        return new Response(image)
      },
      {
        detail: operation({
          id: 'qr',
          summary: 'A QR image of the short URL',
          tag: 'QR codes',
          code: true,
          query: QrQuery,
          answers: {
            200: {
              description: 'The image.',
              binary: Object.values(TYPES),
              headers: ['Cache-Control'],
            },
          },
          refusals: [400, 404, 503],
        }),
      },
    )
    .get('/qr-image/:code', ({ params }) => qrImage(deps, params.code), {
      detail: operation({
        id: 'qrImage',
        summary: 'The addresses of a code and its images',
        tag: 'QR codes',
        code: true,
        answers: { 200: { description: 'The addresses.', view: QrImageView } },
        refusals: [404, 503],
      }),
    })

export const qrRedirectRoutes = (deps: QrDeps) =>
  new Elysia({ name: 'qr.redirect' })
    .use(publicly(deps, { budget: 'read', duringMaintenance: true }))
    .get(
      '/qr/:code',
      ({ params, set }) => {
        set.headers.location = deps.addresses.qrStorage(getCode(deps, params.code))
        set.headers['cache-control'] = 'public, max-age=31536000, immutable'
        return new Response(null, { status: 302 })
      },
      {
        detail: operation({
          id: 'qrStorage',
          summary: 'Leads to the stored QR image',
          tag: 'QR codes',
          code: true,
          answers: {
            302: {
              description: 'The image lies at `Location`.',
              headers: ['Location', 'Cache-Control'],
            },
          },
          refusals: [404],
        }),
      },
    )

/**
 * The stored images, where `CDN_URL` is ours. One that is stored costs no budget, because a proxy
 * that caches them fetches thousands. An unknown code and an image that must be created are charged
 * to the reads of the address, or codes could be guessed here without a limit. No API key is looked
 * at, because clients of images have none.
 */
export const qrFileRoutes = (deps: QrDeps) =>
  new Elysia({ name: 'qr.files' }).get(
    '/cdn/qr/:file',
    async ({ params, request, server, set }) => {
      const { file } = params
      if (!file.endsWith('.png')) throw new AppError('path_not_found')
      const name = file.slice(0, -'.png'.length)
      const peer = server?.requestIP(request)?.address ?? ''
      deps.address.resolve(peer, request.headers.get('x-forwarded-for'))
      // Copied, because other requests arrive during the wait.
      const { keyHigh, keyLow } = deps.address
      const caller = { address: { keyHigh, keyLow }, set: set as Headed }
      let image = await deps.images.find(getFileCode(deps, name, caller))
      if (!image) {
        spendRead(deps, caller)
        // Asked again after the wait: the image of a code deleted meanwhile would stay for good.
        image = await deps.images.make(getCode(deps, name))
      }
      set.headers['cache-control'] = IMAGE_CACHING
      set.headers['content-type'] = TYPES.png
      return new Response(image)
    },
  )

interface FileCaller {
  address: AddressKey
  set: Headed
}

/** The code that somebody holds, free of charge. Throws `code_not_found` or `rate_limited`. */
function getFileCode(deps: QrDeps, text: string, caller: FileCaller): Code {
  const { cache, limiter } = deps
  const code = toCode(text)
  let found = code && cache.findInMemory(code)
  if (code !== undefined && found === undefined) {
    if (!limiter.mayLookUp('read', undefined, caller.address)) throw limited(deps, caller)
    found = cache.lookUp(code)
  }
  if (code !== undefined && isHeld(found)) return code
  spendRead(deps, caller)
  throw new AppError('code_not_found', text.toUpperCase())
}

function spendRead(deps: QrDeps, caller: FileCaller): void {
  if (!deps.limiter.take('read', undefined, caller.address)) throw limited(deps, caller)
  describeLimit(deps.limiter, caller.set)
}

function limited({ limiter }: QrDeps, { set }: FileCaller): AppError {
  describeLimit(limiter, set)
  return rateLimited(limiter)
}

/** A disabled code whose link was deleted has a destination without a link. */
const isHeld = (destination: Destination | null | undefined): boolean =>
  destination != null && destination.id !== NO_LINK

/** The code that somebody holds. Throws `code_not_found`. */
function getCode({ cache }: QrDeps, text: string): Code {
  const code = toCode(text)
  if (!code || !isHeld(cache.find(code))) throw new AppError('code_not_found', text.toUpperCase())
  return code
}

function qrImage(deps: QrDeps, text: string): QrImageView {
  const { code, url } = getLink(deps, text)
  const { addresses } = deps
  return {
    code,
    url,
    short_url: addresses.short(code),
    qr_url: addresses.qr(code),
    qr_storage_url: addresses.qrStorage(code),
  }
}
