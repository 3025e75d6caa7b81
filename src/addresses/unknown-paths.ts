import { type Operations, scan, subject, write } from '../db/subject.ts'
import { type Client, clientNetwork } from '../hot/client-address.ts'
import { isUntracked, type RequestHeaders } from '../http/context.ts'
import { type Clock, DAY, MINUTE } from '../lib/clock.ts'
import { addressKey, canonicalPath, findPathProblem, smallPath } from './address.ts'

/** Paths that visitors ask for and that name no link: most are mistyped. */

/** Days that are kept and shown, the present one included. */
export const PATH_DAYS = 30
/** Paths on the page of a domain, and those that a domain stores of each day. */
export const PATHS_MAX = 500
const PATH_LENGTH_MAX = 64

/** How often a path must be asked for on a UTC day, by at least two networks. */
const REQUESTS_LEAST = 3
/** Rows of candidates, and candidates of a row: 32,768 paths of the day are counted at once. */
const ROWS = 4096
const ROW_LENGTH = 8
/** Paths that wait to be written. */
const WAITING_MAX = 1000
const FLUSH_MS = MINUTE

/** Segments that programs ask every host for, or the beginnings of such. */
const PROBED = `wp-login wp-admin wp-content wp-includes wp-json wp-config wordpress xmlrpc
  phpmyadmin phpinfo phpunit pma/ myadmin adminer vendor/ cgi-bin actuator solr/ jenkins hudson
  struts owa/ ecp/ autodiscover boaform hnap1 _ignition telescope/ server-status server-info
  manager/html druid/ geoserver nacos webshell eval-stdin magento joomla drupal laravel
  config.json package.json robots.txt sitemap favicon apple-touch-icon browserconfig ads.txt`
  .split(/\s+/)
  .map((name) => name.replaceAll('.', '\\.'))
const PROBE = new RegExp(
  `(^|/)(\\.|${PROBED.join('|')})|\\.(php\\d?|aspx?|jspx?|cgi|env|bak|sql|ya?ml|ini|log)$`,
)
/** At least ten digits with at most one sign between two of them: a number of a phone or a card. */
const LONG_NUMBER = /\p{Nd}([^\p{Nd}\p{L}]?\p{Nd}){9}/u
/** What does not print, an address of e-mail, and a path that was encoded twice. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}@%]/u

/**
 * A decoded path as the list has it: in small letters, because aliases answer in any case.
 * Undefined for one that may be about a person or comes from a scanner.
 */
export function listedPath(text: string): string | undefined {
  if (text.length > PATH_LENGTH_MAX) return undefined
  const path = smallPath(canonicalPath(text))
  // A full-width sign is another spelling of @.
  const plain = path.normalize('NFKC')
  const isListed = !HIDDEN.test(plain) && !LONG_NUMBER.test(plain) && !PROBE.test(plain)
  return isListed && findPathProblem(path) === undefined ? path : undefined
}

interface PathCount {
  domainId: number
  /** UTC days since 1970 began. */
  day: number
  path: string
  count: number
}

/** A path with its requests of `PATH_DAYS` days. */
export interface UnknownPath {
  path: string
  total: number
  /** The newest first. */
  days: [day: number, count: number][]
}

export const unknownPaths = subject({
  reads(db) {
    const before = db.prepare<object, [number]>('SELECT 1 FROM unknown_paths WHERE day < ? LIMIT 1')
    return { hasBefore: (day: number): boolean => before.get(day) !== null }
  },

  scans: {
    /** The paths of a domain since a day, the most frequent first. */
    list: scan((db) => {
      const list = db.prepare<{ path: string; total: number; days: string }, [number, number]>(
        `SELECT path, sum(count) AS total, json_group_array(json_array(day, count)) AS days
         FROM unknown_paths WHERE domain_id = ? AND day >= ?
         GROUP BY path ORDER BY total DESC, max(day) DESC, path LIMIT ${PATHS_MAX}`,
      )
      return ({ domainId, since }: { domainId: number; since: number }): UnknownPath[] =>
        list.all(domainId, since).map(({ path, total, days }) => {
          const counts = JSON.parse(days) as UnknownPath['days']
          return { path, total, days: counts.sort(([a], [b]) => b - a) }
        })
    }),
  },

  writes: {
    /** Adds to the counts, and removes days before `since` and the rarest paths of a full day. */
    add: write((db) => {
      const add = db.prepare<null, [number, number, string, number]>(
        `INSERT INTO unknown_paths (domain_id, day, path, count) VALUES (?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET count = count + excluded.count`,
      )
      const trim = db.prepare<null, [number, number]>(
        `DELETE FROM unknown_paths WHERE domain_id = ?1 AND day = ?2 AND path IN (
           SELECT path FROM unknown_paths WHERE domain_id = ?1 AND day = ?2
           ORDER BY count DESC, path LIMIT -1 OFFSET ${PATHS_MAX})`,
      )
      const prune = db.prepare<null, [number]>('DELETE FROM unknown_paths WHERE day < ?')
      return ({ paths, since }: { paths: readonly PathCount[]; since: number }): void => {
        for (const { domainId, day, path, count } of paths) add.run(domainId, day, path, count)
        const full = new Map(paths.map((one) => [`${one.domainId} ${one.day}`, one]))
        for (const { domainId, day } of full.values()) trim.run(domainId, day)
        prune.run(since)
      }
    }),
  },
})

interface Candidate {
  /** A hash of the path. */
  tag: number
  /** The first one that has asked. */
  network: number
  isShared: boolean
  count: number
}

interface UnknownPathsOptions {
  data: { unknownPaths: Pick<Operations<typeof unknownPaths>, 'add' | 'hasBefore'> }
  clock: Clock
  /** With VISIT_DETAILS=off, nothing is counted, and old days are still removed. */
  isOn: boolean
  isReserved: (path: string) => boolean
  flushMs?: number | undefined
}

/**
 * Counts requests for unknown paths on the control thread, in bounded memory. Before a path
 * qualifies, only hashes of it and of its first network are there, until the UTC day ends.
 *
 * The error: a count is never too high, unless two paths have the same row and the same hash of 32
 * bits. It is too low if eight other paths of its row come between two requests for a path, which
 * takes some 30,000 other paths, or if the disk or the cluster refuses a write. A path qualifies
 * for each day, and on each host of a cluster, by itself.
 */
export class UnknownPaths {
  readonly #options: UnknownPathsOptions
  /** So that nobody can choose paths with the same hash. */
  readonly #seeds = crypto.getRandomValues(new Uint32Array(2))
  /** Each row begins with the candidate that was asked for last. */
  #rows: Candidate[][] = []
  #waiting = new Map<string, PathCount>()
  #day = 0
  readonly #timer: Timer
  #running: Promise<void> = Promise.resolve()

  constructor(options: UnknownPathsOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#flush(), options.flushMs ?? FLUSH_MS)
  }

  /** `path`: decoded, without its first slash. */
  count(
    { domainId, path: text }: { domainId: number; path: string },
    { client, headers }: { client: Client; headers: RequestHeaders },
  ): void {
    const { isOn, isReserved } = this.#options
    if (!isOn || isUntracked(headers)) return
    const path = listedPath(text)
    if (path === undefined || isReserved(path)) return
    const day = this.#today()
    if (day !== this.#day) this.#rows = Array.from({ length: ROWS }, () => [])
    this.#day = day
    const key = `${day} ${addressKey({ domainId, path })}`
    const more = this.#countOf(key, this.#hash(clientNetwork(client)))
    const waiting = this.#waiting.get(key)
    if (more === 0 || (!waiting && this.#waiting.size >= WAITING_MAX)) return
    this.#waiting.set(key, { domainId, day, path, count: (waiting?.count ?? 0) + more })
  }

  /** Writes what waits. */
  close(): Promise<void> {
    clearInterval(this.#timer)
    return this.#flush()
  }

  /** Requests to add to the list: all of a path that qualifies now, then each. */
  #countOf(key: string, network: number): number {
    const row = this.#rows[this.#hash(key, 1) % ROWS] as Candidate[]
    const tag = this.#hash(key)
    const at = row.findIndex((candidate) => candidate.tag === tag)
    const found = at < 0 ? undefined : row.splice(at, 1)[0]
    const one = found ?? { tag, network, isShared: false, count: 0 }
    const qualifies = () => one.isShared && one.count >= REQUESTS_LEAST
    const didQualify = qualifies()
    one.isShared ||= one.network !== network
    one.count++
    row.unshift(one)
    if (row.length > ROW_LENGTH) row.pop()
    return didQualify ? 1 : qualifies() ? one.count : 0
  }

  /** One at a time. */
  #flush(): Promise<void> {
    const { unknownPaths } = this.#options.data
    this.#running = this.#running.then(async () => {
      const since = this.#today() - PATH_DAYS + 1
      if (this.#waiting.size === 0 && !unknownPaths.hasBefore(since)) return
      const paths = [...this.#waiting.values()]
      this.#waiting = new Map()
      await unknownPaths.add({ paths, since }, { background: true })
    })
    // What a disk refuses is missing: the next interval has other counts.
    this.#running = this.#running.catch(() => {})
    return this.#running
  }

  #today = (): number => Math.floor(this.#options.clock() / DAY)

  #hash = (text: string, seed: 0 | 1 = 0): number => Bun.hash.xxHash32(text, this.#seeds[seed])
}
