import { gzipSync } from 'node:zlib'
import { Visitor } from '../support/dashboard.ts'
import { ANN, pathOf, START } from '../support/oidc.ts'
import { DISCOVERY, Provider } from '../support/oidc-provider.ts'
import { type Attack, Attacked, p99, structure, timing } from './attacked.ts'

/** Attacks by a provider of sign-in, and by those who have it asked. */

const MEBIBYTE = 1024 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }
const BLANKS = new Uint8Array(MEBIBYTE).fill(0x20)

const endless = (): Response => {
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
    controller.enqueue(BLANKS)
  return new Response(new ReadableStream({ pull }), { headers: JSON_TYPE })
}

export const providerAnswers: Attack = {
  name: 'provider-answers',
  about: 'a provider of sign-in whose answers have no end, or grow when they are decompressed',
  async run(program, { isShort }) {
    await using provider = new Provider()
    await using attacked = await Attacked.start(program, provider.settings)
    const bomb = gzipSync(new Uint8Array((isShort ? 200 : 400) * MEBIBYTE).fill(0x20))
    const packed = { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } }
    const refused: number[] = []
    const observed = await attacked.observe(async () => {
      for (const answer of [endless, () => new Response(bomb, packed)]) {
        provider.instead = (path) => (path === DISCOVERY ? answer() : undefined)
        const starts = Array.from({ length: isShort ? 1 : 3 }, (_, i) =>
          new Visitor(attacked.service, { from: `192.0.2.${i + 1}` }).get(START),
        )
        refused.push(...(await Promise.all(starts)).map(({ status }) => status))
      }
    })
    provider.instead = () => undefined
    const after = await new Visitor(attacked.service).get(START)
    const { residentMost, residentBefore, latencies, failed } = observed
    return [
      structure('starts that were not refused', refused.filter((n) => n !== 502).length, 0),
      structure('memory', residentMost - residentBefore, 150, 'MiB'),
      structure('status of a start afterwards', after.status, 302),
      structure('redirects that failed', failed, 0),
      timing('p99 of redirects meanwhile', p99(latencies), 100, 'ms'),
    ]
  },
}

export const providerSlots: Attack = {
  name: 'provider-slots',
  about: 'made-up codes from four addresses of each network, while the provider hangs on them',
  async run(program, { isShort }) {
    await using provider = new Provider()
    const settings = { ...provider.settings, OIDC_SIGNUP: 'open' }
    await using attacked = await Attacked.start(program, settings)
    const networks = isShort ? 1 : 8
    const flows: { visitor: Visitor; path: string }[] = []
    for (let i = 0; i < networks * 24; i++) {
      const from = `198.51.${Math.floor(i / 24)}.${(i % 4) + 1}`
      const visitor = new Visitor(attacked.service, { from })
      const { location } = await visitor.get(START)
      flows.push({ visitor, path: pathOf(provider.consent(location ?? '', ANN)) })
    }
    const hung = Promise.withResolvers<undefined>()
    provider.instead = (path) => (path === '/token' ? hung.promise : undefined)
    const attempts = flows.map(({ visitor, path }) => visitor.get(path))
    // Enough for the service to ask for the first codes.
    await Promise.race([Promise.all(attempts), Bun.sleep(2000)])
    const asked = provider.count('/token')
    provider.instead = () => undefined
    const other = new Visitor(attacked.service, { from: '203.0.113.9' })
    const start = await other.get(START)
    const end = start.location && pathOf(provider.consent(start.location, ANN))
    const { status } = end ? await other.get(end) : start
    hung.resolve(undefined)
    const answers = await Promise.all(attempts)
    const silent = answers.filter(
      ({ status, headers }) => status === 503 && headers.get('retry-after') === null,
    )
    return [
      structure('codes of a network that the provider is asked for at once', asked / networks, 4),
      structure('refusals without Retry-After', silent.length, 0),
      structure('status of the start of another network', start.status, 302),
      structure('status of its sign-in', status, 303),
    ]
  },
}
