/** What imports do to links: codes and aliases come with them, and nothing that exists changes. */

import type { Account } from './accounts.ts'
import type { Success } from './expected.ts'
import { isBlocked, sameUrl, urlFault } from './judge.ts'
import { type Link, type Links, NO_PASSCODE } from './links.ts'

export interface ImportedRow {
  code?: string
  url: unknown
  aliases?: string[]
  hits?: number
}

const RESULT = { message: /^/ }
const GENERATED = /^[A-HJ-NP-Z2-9]{8}$/
const CODE = /^[A-Za-z0-9]{6,20}$/

export function importRows(
  links: Links,
  owner: Account,
  rows: readonly ImportedRow[],
  now: number,
): Success {
  const created: { link: Link; row: number }[] = []
  let bytes = 0
  const results = rows.map((row, at) => {
    const found = resultOf(links, owner, row)
    if (typeof found === 'string') return { ...RESULT, outcome: found, code: null }
    if (!('free' in found)) return { ...RESULT, ...found }
    const { code = '', url, hits = 0 } = row
    const link = { code: code.toUpperCase(), owner, url: url as string, createdAt: now, hits }
    const stored = { ...link, passcode: NO_PASSCODE }
    links.all.push(stored)
    for (const path of found.free) links.aliases.set(path, stored)
    created.push({ link: stored, row: at })
    bytes += [url as string, ...found.free].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    const outcome = found.free.length > 0 ? 'created_alias' : 'created'
    return { ...RESULT, outcome, code: stored.code || GENERATED }
  })
  const learn = ({ results: said }: Record<string, unknown>) => {
    for (const { link, row } of created) {
      link.code = (said as { code: string }[])[row]?.code ?? ''
    }
  }
  return { status: 200, body: { count: rows.length, links: created.length, bytes, results }, learn }
}

type Found = string | { outcome: string; code: string | RegExp } | { free: string[] }

function resultOf(links: Links, owner: Account, { code, url, aliases = [] }: ImportedRow): Found {
  const fault = urlFault(url)
  if (fault) return 'invalid_url'
  if (isBlocked(url as string, links.settings.blockedHosts)) return 'blocked'
  const compared = (link: Link) => {
    if (link.owner !== owner) return 'path_taken'
    const isSame = link.url !== null && sameUrl(link.url, url as string)
    // A link of the same request has a code that only the answer tells.
    return { outcome: isSame ? 'exists' : 'kept', code: link.code || GENERATED }
  }
  const isFree = (path: string) => !links.aliases.has(path) && !links.find(path)
  const free = [...new Set(aliases)].filter(isFree)
  if (code !== undefined) {
    const found = links.find(code)
    if (found) return compared(found)
    return links.isClosed(code) ? 'path_taken' : { free }
  }
  const [first] = aliases
  if (first === undefined) {
    const found = links.all.find(
      (link) => link.owner === owner && link.url !== null && sameUrl(link.url, url as string),
    )
    return found ? { outcome: 'exists', code: found.code || GENERATED } : { free }
  }
  const found = links.aliases.get(first) ?? (CODE.test(first) ? links.find(first) : undefined)
  return found ? compared(found) : { free }
}
