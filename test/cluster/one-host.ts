/**
 * End-to-end tests that do not apply to a service of several hosts with a random host for each
 * request, and why. `npm run test:cluster` leaves out whole files. Listed tests may fail, and some
 * pass now and then: when their requests happen to meet the one host.
 */

interface OneHost {
  /** The parts of titles, by file; an empty list is the whole file. */
  tests: Readonly<Record<string, readonly string[]>>
  reason: string
}

const LIST: readonly OneHost[] = [
  {
    reason: 'starts clusters itself',
    tests: {
      cluster: [],
      'cluster-commands': [],
      'cluster-recovery': [],
      'cluster-tls': [],
      'dashboard-cluster': [],
      'load-balancer': [],
    },
  },
  {
    reason: 'a host keeps an uploaded file in memory until it is imported',
    tests: { 'dashboard-import': [] },
  },
  {
    reason: 'each host has limits of its own, without client affinity',
    tests: {
      limits: [],
      'limits-charges': [],
      'limits-visitors': [],
      'dashboard-budget': [],
      authentication: [
        'rotated account share its budgets',
        'charges a valid one to its account',
        'charged to the address, 60 in any minute',
      ],
      'dashboard-batch': ['each QR code costs a read'],
      'dashboard-bulk': ['takes one place of the write budget'],
      'dashboard-keys': [
        'the budgets of the plan',
        'a refused change of a read-only key is charged',
      ],
      'key-access': ['a limit of its own', 'charged to the address'],
      cors: ['read its refusals'],
      'dashboard-link-properties': ['a form costs one write'],
      'dashboard-link': ['previews are charged'],
      'dashboard-links': ['asking for free codes', 'takes a place of the account’s write budget'],
      endpoints: ['refuses in one order'],
      'link-rules': ['the limit of a paused link'],
      maintenance: ['the stored images go on'],
      methods: ['HEAD on any GET path'],
      oidc: ['bounds the waiting'],
      'oidc-people': ['are counted as sign-ups'],
      redirect: ['GET /{code} is 404 for a code'],
      'redirect-threads': ['the threads share the limits'],
      'security-headers': ['a client at its limit'],
      site: ['and other problems their page'],
      status: ['beyond the read budget is 429'],
      stopping: ['over its budget'],
      'transfer-limits': ['stalled bodies refuse nobody', 'charged before it is read'],
      'visitor-pages': ['of a used-up limit 429'],
    },
  },
  {
    reason: 'guesses at passwords and queues of sign-ins are limited by each host for itself',
    tests: {
      'dashboard-throttle': [],
      'sign-in-fairness': [],
      'dashboard-hostile': ['no more than five make an account', 'is one browser'],
      'dashboard-takeover': ['five guesses'],
      'dashboard-two-factor': ['codes cannot be tried out'],
      'security-log': ['when the throttle engages'],
    },
  },
  {
    reason: 'during simultaneous visits, hits of other hosts are known with their next flush',
    tests: {
      hits: ['under simultaneous visits and flushes'],
      'link-rules': ['however many requests come at once'],
      'redirect-threads': ['a limit of hits ends exactly there'],
    },
  },
  {
    reason: 'looks at the log, the metrics, the threads or the address of one host',
    tests: {
      metrics: [],
      blocklist: ['the address on which the service listens'],
      log: ['LOG_REQUESTS=api'],
      'dashboard-security': ['known by the origin'],
      'redirect-threads': ['a thread that ends is reported'],
      status: ['a writer thread that ends'],
    },
  },
  {
    reason: 'each host reads blocklists, and notices changes beside the log, for itself',
    tests: {
      blocklist: ['a changed list is active'],
      moderation: ['nobody could take down', 'existing links to a host'],
    },
  },
  {
    reason: 'copies, changes or breaks the database of one host',
    tests: {
      hits: ['when the service dies'],
      'dashboard-security': ['stands in the log', 'a failure is a page'],
      'bulk-shorten': ['larger than the link cache'],
      'dashboard-long-sessions': ['longer than a long one'],
      import: ['whose deletion is scheduled'],
      log: ['a failure on the page', 'are in no line'],
      site: ['fails to find'],
      status: [
        'refuses writes makes status 503',
        'does not answer makes status 503',
        'cannot be read',
      ],
    },
  },
  {
    reason: 'no start of a host in a cluster makes a link that sets up the owner',
    tests: { 'dashboard-sign-in': ['the set-up link', 'set-up link of the start', 'looking at'] },
  },
  {
    reason: 'its browser stays at one host, and the test at another',
    tests: {
      'docs-page': [],
      'dashboard-walk': [],
      'dashboard-walk-two-factor': [],
      'dashboard-browser': [],
      'dashboard-analytics-browser': [],
      'dashboard-link-browser': [],
      'dashboard-list-browser': [],
    },
  },
  {
    reason: 'starts and judges a service by itself, or measures times',
    tests: { model: [], fuzz: [] },
  },
  {
    reason: 'runs chapters that run by themselves',
    tests: { 'more-domains': [] },
  },
]

/** Why a test, or with no title a whole file, does not apply; undefined if it does. */
export function ofOneHost(file: string, title?: string): string | undefined {
  const name = /([^/]+)\.test\.ts$/.exec(file)?.[1] ?? ''
  const applies = ({ tests }: OneHost): boolean => {
    const parts = tests[name]
    if (parts === undefined) return false
    return parts.length === 0 || parts.some((part) => title?.includes(part))
  }
  return LIST.find(applies)?.reason
}

/** Entries that name no test any more. `titles`: of all tests of a file that has entries. */
export function outdatedEntries(titles: ReadonlyMap<string, string>): string[] {
  return LIST.flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([file, parts]) => {
      const text = titles.get(file)
      if (text === undefined) return [file]
      return parts.filter((part) => !text.includes(part)).map((part) => `${file}: ${part}`)
    }),
  )
}
