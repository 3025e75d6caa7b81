import { eventually } from '../support/app.ts'
import { openBeside } from '../support/database.ts'
import { type Attack, Attacked, p99, structure, timing } from './attacked.ts'

/** Attacks with what visitors send of themselves. */

const HOSTNAME = '127.0.0.1'
const CONNECTIONS = 4
const BATCH = 100
/** A row of details may have 100 referrers of 64 characters. */
const ROW_BYTES_MAX = 8192

/** A request like no other: another browser, another page that it comes from, long cookies. */
const requestOf = (path: string, n: number): string =>
  [
    `GET ${path}?utm_source=${n % 2 === 0 ? '' : `%E2%80%AE${n}`} HTTP/1.1`,
    'Host: x',
    `User-Agent: Mozilla/5.0 (X11; Linux ${n}) Gecko/${n} Firefox/${n % 200}.0 \x80\xff<script>`,
    `Referer: https://${'r'.repeat(40)}-${n}.example/${n}`,
    `CF-IPCountry: ${n % 3 === 0 ? 'ZZZZ' : '=1+1'}`,
    `Cookie: ${'c'.repeat(n % 50 === 0 ? 4000 : 100)}`,
    '\r\n',
  ].join('\r\n')

/** Sends `count` requests on one connection, in batches. Returns how many were redirected. */
function pump(port: number, path: string, { first, count }: { first: number; count: number }) {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let sent = 0
  let answered = 0
  const next = () => {
    const batch = Array.from({ length: Math.min(BATCH, count - sent) }, (_, i) =>
      requestOf(path, first + sent + i),
    )
    sent += batch.length
    return Buffer.from(batch.join(''), 'latin1')
  }
  let rest: Buffer | undefined
  const write = (socket: Bun.Socket) => {
    if (rest) rest = rest.subarray(socket.write(rest))
    if (rest?.length === 0) rest = undefined
  }
  Bun.connect({
    hostname: HOSTNAME,
    port,
    socket: {
      open(socket) {
        rest = next()
        write(socket)
      },
      data(socket, bytes) {
        answered += bytes.toString('latin1').split('HTTP/1.1 302').length - 1
        if (answered < sent) return
        if (sent < count) {
          rest = next()
          write(socket)
        } else socket.end()
      },
      drain: write,
      close: () => resolve(answered),
      error: (_, error) => reject(error),
    },
  }).catch(reject)
  return promise
}

/** Sends the requests to a service of its own. `details`: the value of VISIT_DETAILS. */
async function flood(program: string, details: 'on' | 'off', count: number) {
  const settings = { COUNTRY_HEADER: 'CF-IPCountry', VISIT_DETAILS: details }
  await using attacked = await Attacked.start(program, settings)
  const { attacker, service, dataDir } = attacked
  const code = await service.shorten(attacker.key, 'https://example.com/attacked')
  const each = count / CONNECTIONS
  let redirected = 0
  const observed = await attacked.observe(async () => {
    const counts = await Promise.all(
      Array.from({ length: CONNECTIONS }, (_, n) =>
        pump(attacked.port, `/${code}`, { first: n * each, count: each }),
      ),
    )
    redirected = counts.reduce((sum, one) => sum + one, 0)
  })
  using db = openBeside(dataDir)
  const rows = db.query<{ rows: number; bytes: number }, []>(
    `SELECT count(*) AS rows, coalesce(max(length(parts)), 0) AS bytes FROM hit_days
     WHERE scope = 0 AND parts IS NOT NULL`,
  )
  const read = () => rows.get() ?? { rows: 0, bytes: 0 }
  if (details === 'on') await eventually('details are stored', () => read().rows > 0)
  const hits = await service.hitCount(code)
  const memory = observed.residentMost - observed.residentBefore
  return { redirected, hits, observed, memory, stored: read() }
}

export const visitors: Attack = {
  name: 'visitors',
  about: 'redirects with a million different browsers and referrers, from one network',
  async run(program, { isShort }) {
    const count = isShort ? 20_000 : 1_000_000
    const without = await flood(program, 'off', count)
    const { redirected, hits, observed, memory, stored } = await flood(program, 'on', count)
    return [
      structure('redirects that were not answered', count - redirected, 0),
      structure('redirects that were not counted', redirected - hits, 0),
      structure('redirects of others that failed', observed.failed, 0),
      // That of the link of the victim is the second one, and midnight may pass.
      structure('rows of details of links', stored.rows, 4),
      structure('bytes of the largest of them', stored.bytes, ROW_BYTES_MAX),
      timing('memory beside that without details', memory - without.memory, 40, 'MiB'),
      timing('p99 of redirects of others meanwhile', p99(observed.latencies), 50, 'ms'),
    ]
  },
}
