import type { Database } from 'bun:sqlite'
import { canonicalHost } from '../blocklist/match.ts'
import { newestHour } from '../hits/hours.ts'
import { dayOf, HOURS_OF_DAY, hourOf } from '../hits/series.ts'
import { MINUTE } from '../lib/clock.ts'
import { VERSION } from '../lib/version.ts'
import type { OpenTask } from '../outgoing/thread.ts'
import type { CheckResult } from './store.ts'
import { checkDestination, type Finding } from './verdict.ts'

/** The page that explains the checks. */
export const CHECKER_PATH = '/-/checker'

/** Links that are read at once: memory and transactions stay bounded. */
const PAGE = { due: 100, recorded: 20, swept: 500 }
/** Links of one host that are asked for in a page: a slow host holds up others no longer. */
const OF_HOST_MAX = 10
/** Checks at a time, of the 16 requests of the sender. */
const AT_ONCE = 8
const PAUSE_MS = MINUTE
const FOLLOWED_DAYS = 30

interface Candidate {
  id: number
  url: string | null
  /** The beginning of `hits.hours`. */
  hours: Uint8Array | null
  printed: number | null
  dueAt: number | null
  /** 1: visitors of the link may reach its destination. */
  isOpen: number
}

const CANDIDATE = `l.id, l.url, substr(h.hours, 1, 8) AS hours, printed, due_at AS dueAt,
  l.url IS NOT NULL AND l.delete_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM disabled_codes d WHERE d.code = l.code)
    AND NOT EXISTS (SELECT 1 FROM accounts a
                    WHERE a.id = l.account_id AND links_disabled_at IS NOT NULL) AS isOpen`

/** Whether a link is to be checked: it was followed in the last 30 days, or printed. */
function isChecked({ hours, printed, isOpen }: Candidate, now: number): boolean {
  const followed = newestHour(hours) ?? 0
  return isOpen === 1 && (printed === 1 || followed > hourOf(now) - FOLLOWED_DAYS * HOURS_OF_DAY)
}

/** As the sender, which sends one request at a time to each. */
const hostOf = ({ url }: Candidate): string =>
  url === null ? '' : canonicalHost(new URL(url).hostname)

/**
 * Checks the destinations of links: the URL of the link, not those of its rules. Each link has its
 * time in the week; one that fails is checked again after a day. Once a day, a sweep over all links
 * finds those that are to be checked from now on. No URL is ever logged.
 */
export const destinationChecks: OpenTask = ({ db, sender, clock, baseUrl, call }) => {
  const { listDue, sweep, isOwnHost } = reads(db, baseUrl)
  const options = {
    sender,
    userAgent: `Hopcode/${VERSION} (+${baseUrl}${CHECKER_PATH})`,
    isOwnHost,
  }
  let sweptDay: number | undefined
  let sweptTo = 0

  const findNew = async (now: number): Promise<boolean> => {
    if (sweptDay === dayOf(hourOf(now))) return false
    const links = sweep.all(sweptTo)
    const linkIds = links.filter((one) => one.dueAt === null && isChecked(one, now))
    if (linkIds.length > 0) {
      await call('checks.schedule', { linkIds: linkIds.map(({ id }) => id), now })
    }
    const isOver = links.length < PAGE.swept
    sweptTo = isOver ? 0 : (links.at(-1)?.id ?? 0)
    if (isOver) sweptDay = dayOf(hourOf(now))
    return !isOver
  }

  /** Hosts are checked side by side, the links of each one after the other. */
  const checkDue = async (now: number): Promise<boolean> => {
    const { due, isPart } = listDue(now)
    let isBehind = isPart
    const results: CheckResult[] = []
    const record = async () => {
      const part = results.splice(0)
      if (part.length > 0) await call('checks.record', { results: part, now: clock() })
    }
    const checkHost = async (links: readonly Candidate[]) => {
      let asked = 0
      let finding: Finding | undefined
      for (const one of links) {
        const { id: linkId, dueAt, url } = one
        const isAsked = url !== null && isChecked(one, now)
        // A host that does not answer would hold up all others.
        if (isAsked && finding?.status !== 'timeout') {
          if (asked++ === OF_HOST_MAX) {
            isBehind = true
            return
          }
          finding = await checkDestination(url, options)
        }
        results.push({ linkId, dueAt: dueAt ?? 0, finding: isAsked ? finding : undefined })
        if (results.length >= PAGE.recorded) await record()
      }
    }
    const hosts = Map.groupBy(due, hostOf).values()
    const work = async () => {
      for (const links of hosts) await checkHost(links)
    }
    const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, work))
    await record()
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    return isBehind
  }

  return {
    async run() {
      if (!(await call('checks.isMine', undefined))) return PAUSE_MS
      const now = clock()
      const isSweeping = await findNew(now)
      const isBehind = await checkDue(now)
      return isSweeping || isBehind ? 0 : PAUSE_MS
    },
  }
}

function reads(db: Database, baseUrl: string) {
  const own = canonicalHost(new URL(baseUrl).hostname)
  const domain = db.prepare<object, [string]>('SELECT 1 FROM domains WHERE host = ?')
  // Each step finds the next account in the index: one may have a million links that are due.
  const next = 'SELECT min(account_id) FROM link_checks WHERE due_at IS NOT NULL AND account_id >'
  const accounts = db.prepare<{ id: number }, [number, number]>(
    `WITH RECURSIVE found(id) AS (
       ${next} ?1 UNION ALL SELECT (${next} found.id) FROM found WHERE id IS NOT NULL
     ) SELECT id FROM found WHERE (
         SELECT min(due_at) FROM link_checks WHERE account_id = found.id AND due_at IS NOT NULL
       ) <= ?2 LIMIT ${PAGE.due}`,
  )
  const ofAccount = db.prepare<Candidate, [number, number, number]>(
    `SELECT ${CANDIDATE} FROM (
       SELECT link_id, printed, due_at FROM link_checks INDEXED BY link_checks_due
       WHERE account_id = ? AND due_at <= ? ORDER BY due_at LIMIT ?) c
     JOIN links l ON l.id = c.link_id LEFT JOIN hits h ON h.link_id = l.id ORDER BY due_at`,
  )
  /** The last account of the page before this one; 0: the next page begins with the first one. */
  let last = 0
  return {
    /** Accounts take turns. `isPart`: there may be more. */
    listDue(now: number) {
      const isLaterPage = last > 0
      const found = accounts.all(last, now)
      last = found.length === PAGE.due ? (found.at(-1)?.id ?? 0) : 0
      const share = Math.ceil(PAGE.due / found.length)
      const lists = found.map(({ id }) => ofAccount.all(id, now, share))
      const turns = lists.flatMap((list) => list.map((one, turn) => ({ ...one, turn })))
      return {
        due: turns.sort((a, b) => a.turn - b.turn),
        isPart: isLaterPage || last > 0 || lists.some(({ length }) => length === share),
      }
    },
    sweep: db.prepare<Candidate, [number]>(
      `SELECT ${CANDIDATE} FROM links l LEFT JOIN hits h ON h.link_id = l.id
       LEFT JOIN link_checks c ON c.link_id = l.id
       WHERE l.id > ? ORDER BY l.id LIMIT ${PAGE.swept}`,
    ),
    isOwnHost: (hostname: string): boolean => {
      const host = canonicalHost(hostname)
      return host === own || domain.get(host) !== null
    },
  }
}
