import { anonymousBudgets, planLimits } from './accounts/plans.ts'
import { OwnAddress } from './blocklist/own-address.ts'
import { Blocklist } from './blocklist/watch.ts'
import type { Config } from './config.ts'
import { databaseFile } from './db/open.ts'
import { CodeVersions } from './hot/code-versions.ts'
import type { Clock, MonotonicClock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { limitLines } from './lib/log-limit.ts'
import type { RandomBytes } from './lib/random.ts'
import { RateLimiter } from './limits/budgets.ts'
import { prepare } from './prepare.ts'
import { type Control, RedirectThreads } from './redirect/threads.ts'
import type { OpenWorker } from './start-threads.ts'
import { visitHeaders } from './visits/classify.ts'

/** Dependencies on the outside world: tests pass their own. */
export interface Outside {
  clock: Clock
  monotonic: MonotonicClock
  random: RandomBytes
  log: Log
  /** Entries of the hit journal if it is created. */
  journalEntries?: number
  /** Maximum number of addresses that the limiter counts at once. */
  addressesMax?: number
  /** `clock` and `monotonic` for other threads: see `clocksIn`. Default: the machine's. */
  time?: SharedArrayBuffer
  /** How often details of visits are written. */
  visitFlushMs?: number | undefined
  /** Starts a thread. Default: a new Worker. */
  openWorker?: OpenWorker
  /** Lines that the log could not write. */
  logLinesDropped?: () => number
}

export type Redirecting = Awaited<ReturnType<typeof startRedirects>>

/**
 * Prepares the data folder and opens the public port. From then on redirects are answered; all
 * other requests wait for `control`. Throws DataError, and ListenError if the port cannot be
 * opened.
 */
export async function startRedirects(config: Config, outside: Outside, control: Promise<Control>) {
  const { clock, monotonic, random, time, addressesMax } = outside
  const log = limitLines(outside.log, monotonic)
  const openWorker = outside.openWorker ?? ((url: URL) => new Worker(url))
  const prepared = await prepare(config, { ...outside, log })
  const plans = planLimits(config)
  const limiter = new RateLimiter(
    RateLimiter.allocate({
      plans,
      anonymous: anonymousBudgets(config),
      pagesPerMinute: config.dashboardRequestsPerMinute,
      addressesMax,
    }),
    { clock, monotonic },
  )
  const versions = CodeVersions.allocate(random)
  const blocklist = await Blocklist.open({
    files: config.blocklistFiles,
    thread: new URL('./threads/blocklist.ts', import.meta.url),
    ownHosts: [config.baseUrl, config.cdnUrl],
    ownAddress: new OwnAddress({ host: config.host, port: () => redirects.port }),
    // The cached destinations have passed the old lists.
    onChange: () => void redirects.setLists().then(() => versions.changeAll()),
    log,
  })
  const { journal } = prepared
  const redirects: RedirectThreads = new RedirectThreads({
    count: config.redirectThreads,
    openWorker: () => openWorker(new URL('./threads/redirect.ts', import.meta.url)),
    log,
    settings: {
      databaseFile: databaseFile(config.dataDir),
      cacheMax: config.linkCacheMax,
      trustedProxies: config.trustedProxies,
      notFoundUrl: config.notFoundUrl,
      logsRequests: config.logRequests === 'all',
      versions: versions.memory,
      time,
    },
    visitHeaders: config.visitDetails ? visitHeaders(config.countryHeader) : undefined,
    limiter,
    journal,
    blocklist,
    control,
  })
  try {
    await redirects.listen({ hostname: config.host, port: config.port })
  } catch (error) {
    await redirects.close()
    prepared.db.close()
    prepared.lock.release()
    throw error
  }
  return {
    ...outside,
    openWorker,
    log,
    config,
    prepared,
    journal,
    plans,
    limiter,
    versions,
    blocklist,
    redirects,
  }
}
