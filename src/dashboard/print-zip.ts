import { Zip, ZipPassThrough } from 'fflate'
import { CONTROLS, type QrOptions } from '../draw/options.ts'
import { rateLimited } from '../http/guard.ts'
import { BYTE_ORDER_MARK, csvLine } from '../lib/csv.ts'
import type { DetailedLink } from '../links/properties.ts'
import { canBeCapital, fileNameOf } from '../qr/content.ts'
import type { PageContext } from './auth/guard.ts'
import { fileResponse } from './responses.ts'

/** The title on one line. */
export const plainTitle = ({ properties }: DetailedLink): string =>
  (properties.title ?? '').normalize('NFC').split(CONTROLS).join(' ').trim()

/** An alias in small letters stays as it is. */
export const forAddress = (options: QrOptions, address: string): QrOptions => ({
  ...options,
  capitals: options.capitals && canBeCapital(address) ? true : undefined,
})

/** Each image costs one read of the account's budget. */
export async function zipOf(
  context: PageContext,
  links: readonly DetailedLink[],
  options: QrOptions,
): Promise<Response> {
  const { deps, user } = context
  const { limiter, unsent, images } = deps
  const { account } = user
  const single = images.holdZip(account.id)
  try {
    for (const _ of links) {
      const budget = limiter.takeOf(account, 'read')
      if (!budget.allowed) throw rateLimited(budget)
    }
    const body = await unsent.generate(account.id, zipChunks(context, links, options, single))
    return fileResponse(body, { name: 'hopcode-qr-codes.zip', type: 'application/zip' })
  } catch (error) {
    single[Symbol.dispose]()
    throw error
  }
}

/** Images are stored as they are: a PNG is compressed, and an SVG small. */
async function* zipChunks(
  { deps, user }: PageContext,
  links: readonly DetailedLink[],
  options: QrOptions,
  single: Disposable,
): AsyncGenerator<Uint8Array, void, undefined> {
  using _ = single
  const { images, addresses, clock } = deps
  const chunks: Uint8Array[] = []
  const zip = new Zip((error, chunk) => {
    if (error) throw error
    chunks.push(chunk)
  })
  const add = (name: string, bytes: Uint8Array) => {
    const file = new ZipPassThrough(name)
    file.mtime = clock()
    zip.add(file)
    file.push(bytes, true)
    return Buffer.concat(chunks.splice(0))
  }
  const names = fileNames(links, (link) => fileNameOf(addresses.display(link), plainTitle(link)))
  const fileOf = (at: number) => `${names[at]}.${options.format}`
  const lines = links.map((link, at) =>
    csvLine([fileOf(at), addresses.display(link), link.url, link.properties.title ?? '']),
  )
  const head = csvLine(['file', 'short_url', 'url', 'title'])
  yield add('codes.csv', new TextEncoder().encode(BYTE_ORDER_MARK + head + lines.join('')))
  for (const [at, link] of links.entries()) {
    const address = addresses.display(link)
    const chosen = forAddress(options, address)
    const image = await images.render(link, chosen, user.account.id, { address, isPrint: true })
    yield add(fileOf(at), image)
  }
  zip.end()
  yield Buffer.concat(chunks)
}

/** Names that file systems keep apart, in any case. */
function fileNames<Item>(items: readonly Item[], nameOf: (item: Item) => string): string[] {
  const used = new Set<string>()
  return items.map((item) => {
    const name = nameOf(item)
    let free = name
    for (let n = 2; used.has(free.toLowerCase()); n++) free = `${name}-${n}`
    used.add(free.toLowerCase())
    return free
  })
}
