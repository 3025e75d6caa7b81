import { mainThreadSecondsOf } from '../../bench/lib/process-stats.ts'
import { type Attack, Attacked, p99, structure, timing } from './attacked.ts'

const RULES = 20
const PARAMETERS = 4
/** Characters of the URL of a rule, so that the rules together have nearly 16 KiB. */
const URL_LENGTH = 500

/** Every condition is compared before the last one fails. */
const RULE = {
  os: ['linux'],
  language: ['xa', 'xb', 'xc', 'xd', 'xe', 'xf', 'xg', 'xh', 'xi', 'de'],
  query: Object.fromEntries(Array.from({ length: PARAMETERS }, (_, n) => [`p${n}`, true])),
  days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
  zone: 'Australia/Lord_Howe',
}

const HEADERS = {
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0',
  'accept-language': `${Array.from({ length: 500 }, (_, n) => `y${n}`).join()},de`,
}

/** Follows a link with as many rules as it may have, of which none matches. */
export const rules: Attack = {
  name: 'rules',
  about: 'visits of a link with 16 KiB of destinations by rule, none of which matches',
  async run(program, { isShort }) {
    await using attacked = await Attacked.start(program)
    const { attacker, service } = attacked
    const code = await service.shorten(attacker.key, 'https://example.com/none')
    const set = async (count: number) => {
      const destinations = Array.from({ length: count }, (_, n) => ({
        when: { ...RULE, query: { ...RULE.query, last: `none ${n}` } },
        url: `https://example.com/${n}/`.padEnd(URL_LENGTH, 'x'),
      }))
      const { status } = await service.fetch(`/api/links/${code}`, {
        method: 'PATCH',
        headers: { 'x-api-key': attacker.key, 'content-type': 'application/json' },
        body: JSON.stringify({ destinations }),
      })
      return status
    }
    const tooMany = await set(RULES + 1)
    const accepted = await set(RULES)
    if (accepted !== 200) throw new Error(`the rules were not accepted: ${accepted}`)
    const query = Array.from({ length: 100 }, (_, n) => `q${n}=%62`).join('&')
    const present = Object.keys(RULE.query).join('&')
    const path = `/${code}?${query}&${present}&last=other`
    let asked = 0
    let wrong = 0
    const controlBefore = mainThreadSecondsOf(service.pid)
    const observed = await attacked.observe(async () => {
      const until = performance.now() + (isShort ? 1000 : 8000)
      const ask = async () => {
        while (performance.now() < until) {
          const { headers } = await service.fetch(path, { headers: HEADERS })
          if (headers.get('location') !== 'https://example.com/none') wrong++
          asked++
        }
      }
      await Promise.all([ask(), ask(), ask(), ask()])
    })
    const controlMs = ((mainThreadSecondsOf(service.pid) - controlBefore) * 1000) / asked
    const { latencies, failed } = observed
    return [
      structure('status of more rules', tooMany, 400),
      structure('visits that were led elsewhere', wrong, 0),
      structure('redirects of others that failed', failed, 0),
      timing('time of the control thread per visit', controlMs, 0.2, 'ms'),
      timing('p99 of redirects of others meanwhile', p99(latencies), 50, 'ms'),
    ]
  },
}
