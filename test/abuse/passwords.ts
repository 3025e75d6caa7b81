import { UNLIMITED } from '../support/binary.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { type Attack, Attacked, highest, median, structure, timing } from './attacked.ts'

/** Guesses at the passwords of links, by every way to send one. */

const MINUTE_MS = 60_000
const WORD = 'open sesame'
/** Between two sign-ins of one person. The pace of the queue allows ten a second. */
const PAUSE_MS = 150

/** See `Throttle`: attempts at once, and the time after which there is one more. */
const GATES = {
  network: { burst: 60, everyMs: MINUTE_MS / 6 },
  link: { burst: 100, everyMs: MINUTE_MS / 2 },
}

const allowed = ({ burst, everyMs }: { burst: number; everyMs: number }, ms: number) =>
  burst + Math.floor(ms / everyMs)

interface LockedLink {
  code: string
  alias: string
}

async function lockedLink({ service, attacker }: Attacked, n: number): Promise<LockedLink> {
  const code = await service.shorten(attacker.key, `https://example.com/locked/${n}`)
  const alias = `locked/${n}`
  const { status } = await service.fetch(`/api/links/${code}`, {
    method: 'PATCH',
    headers: { 'x-api-key': attacker.key, 'content-type': 'application/json' },
    body: JSON.stringify({ password: WORD, aliases: [alias] }),
  })
  if (status !== 200) throw new Error(`the password cannot be set: ${status}`)
  return { code, alias }
}

/** Guess number `n`, by the form, by the form of an alias, or by Basic authentication. */
async function guess({ service }: Attacked, { code, alias }: LockedLink, n: number, from: string) {
  const password = `guess ${n}`
  const headers = { 'x-forwarded-for': from }
  const response =
    n % 3 === 0
      ? await service.fetch(`/${code}`, {
          headers: { ...headers, authorization: `Basic ${btoa(`:${password}`)}` },
        })
      : await service.fetch(`/${n % 3 === 1 ? code : alias}`, {
          method: 'POST',
          headers,
          body: new URLSearchParams({ password }),
        })
  await response.arrayBuffer()
  return response.status
}

interface Size {
  guesses: number
  networks: number
  /** Of each network. Each has one request in progress: together fewer than the queue holds. */
  addresses: number
}
/** More addresses than the gate of the network admits, at 5 guesses per address and link. */
const SHORT: Size = { guesses: 200, networks: 1, addresses: 20 }
const LONG: Size = { guesses: 10_000, networks: 50, addresses: 2 }

/** Sends all guesses, one after the other from each address. Returns the answers by status. */
async function flood(
  attacked: Attacked,
  links: readonly LockedLink[],
  { guesses, networks, addresses }: Size,
) {
  const statuses: Record<number, number> = {}
  let next = 0
  const from = async (address: string) => {
    while (next < guesses) {
      const n = next++
      const status = await guess(attacked, links[n % links.length] as LockedLink, n, address)
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: networks * addresses }, (_, i) =>
      from(`10.${i % networks}.0.${Math.floor(i / networks)}`),
    ),
  )
  return { statuses, ms: performance.now() - begun }
}

/** Milliseconds, ascending, of sign-ins of the victim until `isDone`. */
export async function timeSignIns(
  { service, victim }: Attacked,
  isDone: (count: number) => boolean,
) {
  const times: number[] = []
  let refused = 0
  while (!isDone(times.length)) {
    const visitor = new Visitor(service, { from: `203.0.113.${times.length % 250}` })
    const { csrf } = await visitor.get('/app/sign-in')
    const begun = performance.now()
    const fields = { email: victim.email, password: PASSWORD, csrf }
    const { status } = await visitor.post('/app/sign-in', fields)
    times.push(performance.now() - begun)
    if (status !== 303) refused++
    await Bun.sleep(PAUSE_MS)
  }
  return { times: times.sort((a, b) => a - b), refused }
}

export const passwords: Attack = {
  name: 'passwords',
  about: '10,000 guesses at the passwords of links from 50 networks, by form, alias and Basic',
  async run(program, { isShort }) {
    const size = isShort ? SHORT : LONG
    await using attacked = await Attacked.start(program, { ...UNLIMITED, IMPORT_ALIASES: 'all' })
    const { service, victim } = attacked
    const links = await Promise.all(
      Array.from({ length: isShort ? 1 : 5 }, (_, n) => lockedLink(attacked, n)),
    )
    await attacked.signIn(victim, '203.0.113.250')
    // A visitor who has entered the password before the attack.
    const body = new URLSearchParams({ password: WORD })
    const entered = await service.fetch(`/${links[0]?.code}`, { method: 'POST', body })
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? ''
    const before = await timeSignIns(attacked, (count) => count >= (isShort ? 3 : 30))
    let sent = { statuses: {} as Record<number, number>, ms: 0 }
    let during = before
    let shutOut = 0
    const observed = await attacked.observe(async () => {
      let isOver = false
      const flooding = flood(attacked, links, size).finally(() => {
        isOver = true
      })
      const inside = async () => {
        while (!isOver) {
          const { status } = await service.fetch(`/${links[0]?.code}`, { headers: { cookie } })
          if (status !== 302) shutOut++
          await Bun.sleep(PAUSE_MS)
        }
      }
      const [flooded, meanwhile] = await Promise.all([
        flooding,
        timeSignIns(attacked, (count) => isOver && count > 0),
        inside(),
      ])
      sent = flooded
      during = meanwhile
    })
    const verified = sent.statuses[403] ?? 0
    const refused = (sent.statuses[429] ?? 0) + (sent.statuses[503] ?? 0)
    const most = Math.min(
      size.networks * allowed(GATES.network, sent.ms),
      links.length * allowed(GATES.link, sent.ms),
    )
    const least = Math.min(size.networks * GATES.network.burst, links.length * GATES.link.burst)
    return [
      structure(`passwords verified, of ${size.guesses} guesses`, verified, most),
      structure(
        'guesses that the gates allow and nobody verified',
        Math.max(0, least - verified),
        0,
      ),
      structure('guesses with another answer', size.guesses - verified - refused, 0),
      structure('requests of a visitor with the cookie that failed', shutOut, 0),
      structure('sign-ins of others that were refused', during.refused, 0),
      structure('redirects of others that failed', observed.failed, 0),
      timing(
        'sign-ins of others, beside their time before',
        median(during.times) / median(before.times),
        1.2,
        '',
      ),
      timing('slowest redirect of others', highest(observed.latencies), 50, 'ms'),
    ]
  },
}

/** A link with a hash of bcrypt, which only an import creates. Returns its code. */
async function importedLink({ service, attacker }: Attacked, code: string): Promise<string> {
  const hash = Bun.password.hashSync(WORD, { algorithm: 'bcrypt', cost: 12 })
  const answer = await service.fetch('/api/import', {
    method: 'POST',
    headers: { 'x-api-key': attacker.key, 'content-type': 'application/x-ndjson' },
    body: JSON.stringify({ code, url: `https://example.com/${code}`, password_hash: hash }),
  })
  if (!(await answer.text()).includes('"created"')) throw new Error('the link is not imported')
  return `/${code}`
}

export const importedPasswords: Attack = {
  name: 'imported passwords',
  about: 'six guesses each of eight networks at one imported link, and at eight of one network',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program, UNLIMITED)
    const { service } = attacked
    const send = async (path: string, password: string, from: string) => {
      const body = new URLSearchParams({ password })
      const headers = { 'x-forwarded-for': from }
      const begun = performance.now()
      const answer = await service.fetch(path, { method: 'POST', headers, body })
      await answer.arrayBuffer()
      return { status: answer.status, ms: performance.now() - begun }
    }
    const codes = Array.from({ length: 12 }, (_, n) => `LOCKED${n}X`)
    const [one = '', alone = '', ...others] = await Promise.all(
      codes.map((code) => importedLink(attacked, code)),
    )
    const control = await send(alone, WORD, '203.0.113.1')
    const besides = async (guesses: Promise<unknown>[], path: string, from: string) => {
      await Bun.sleep(10 * PAUSE_MS)
      const seen = await send(path, WORD, from)
      await Promise.all(guesses)
      return seen
    }
    const networks = Array.from({ length: isShort ? 3 : 8 }, (_, n) => n)
    const tries = Array.from({ length: isShort ? 1 : 6 }, (_, n) => n)
    const guessAll = (send: (n: number, at: number) => Promise<unknown>) =>
      networks.flatMap((n) => tries.map((at) => send(n, at)))
    const byNetworks = await besides(
      guessAll((n, at) => send(one, `guess ${at}`, `10.${n}.0.${at}`)),
      others[8] ?? '',
      '203.0.113.2',
    )
    const byLinks = await besides(
      guessAll((n, at) => send(others[n] ?? '', `guess ${at}`, `10.99.0.${n}`)),
      others[9] ?? '',
      '203.0.113.3',
    )
    const slowest = Math.max(byNetworks.ms, byLinks.ms)
    const failed = [control, byNetworks, byLinks].filter(({ status }) => status !== 303)
    return [
      structure('right passwords that were refused', failed.length, 0),
      timing(
        'the right password of another link, less its time alone',
        slowest - control.ms,
        3000,
        'ms',
      ),
    ]
  },
}
