/** What a run is made of: requests, and what operators and time do in between. */

import fc from 'fast-check'
import type { Answer } from '../support/app.ts'
import { type Plan as AccountPlan, endKeys } from './accounts.ts'
import { type Plan, plans, type Scene } from './calls.ts'
import { differences, type Expected, unlike } from './expected.ts'
import type { Call } from './model.ts'
import type { Service } from './service.ts'

export type Command = fc.AsyncCommand<Scene, Service>

const HOUR = 3_600_000

abstract class Always implements Command {
  check(): boolean {
    return true
  }
  abstract run(scene: Scene, service: Service): Promise<void>
  abstract toString(): string
}

/** Sends a request as often as it says, and judges each answer. */
class Ask extends Always {
  readonly #plan: Plan
  readonly #times: number
  readonly #isTogether: boolean
  #sent: Call | undefined

  constructor(plan: Plan, times: number, isTogether = false) {
    super()
    this.#isTogether = isTogether
    this.#plan = plan
    this.#times = times
  }

  async run(scene: Scene, service: Service): Promise<void> {
    const call = this.#plan.make(scene)
    this.#sent = call
    if (this.#isTogether) await askTogether(scene, service, call, this.#times)
    else for (let time = 0; time < this.#times; time++) await ask(scene, service, call)
    if (call.path.startsWith('/qr/')) await checkImage(scene, service, call)
  }

  toString(): string {
    const { method, path, key, from, body } = this.#sent ?? {}
    const times =
      this.#times > 1 ? ` ${this.#times} times${this.#isTogether ? ' at once' : ''}` : ''
    return this.#sent
      ? `${method} ${path} key=${key?.slice(-6)} from=${from} ${body?.slice(0, 200) ?? ''}${times}`
      : this.#plan.about
  }
}

async function ask(scene: Scene, service: Service, call: Call): Promise<void> {
  const expected = scene.model.predict(call, service.time)
  judge(scene, call, expected, await service.ask(call))
}

function judge(scene: Scene, call: Call, expected: Expected, answer: Answer): void {
  const wrong = differences(expected, answer)
  if (wrong.length > 0) throw new Error([`${call.method} ${call.path}`, ...wrong].join('\n  '))
  const at = `${call.method} ${nameOf(call.path)} ${answer.status}`
  scene.met.set(at, (scene.met.get(at) ?? 0) + 1)
  for (const { code, passcode } of scene.model.links.all) {
    const isSeen = scene.seen.some((one) => one.code === code && one.passcode === passcode)
    if (!isSeen) scene.seen.push({ code, passcode })
  }
}

/**
 * The same request several times at once: in some order, the answers must be those that it would
 * have had one after the other.
 */
async function askTogether(scene: Scene, service: Service, call: Call, times: number) {
  const calls = Array<Call>(times).fill(call)
  const expected = calls.map(() => scene.model.predict(call, service.time))
  const answers = await Promise.all(calls.map(() => service.ask(call)))
  // Which of them was charged first need not be the one that was done first.
  const charges = 'x-ratelimit-remaining'
  const said = answers.map(({ headers }) => headers.get(charges)).sort()
  const wanted = expected.map(({ headers }) => headers[charges]).sort()
  if (String(said) !== String(wanted)) throw new Error(`${charges}: ${said}, not ${wanted}`)
  for (const { headers, ...rest } of expected) {
    const { [charges]: _, ...others } = headers
    const one = { ...rest, headers: others }
    const found = answers.findIndex((answer) => unlike(one, answer).length === 0)
    const [answer] = answers.splice(Math.max(0, found), 1)
    judge(scene, call, one, answer as Answer)
  }
}

/** The path as the contract writes it. */
const nameOf = (path: string) =>
  path
    .replace(/\?.*/, '')
    .replace(/^(\/api\/(?:lookup|qr|qr-image)\/|\/qr\/|\/)(?!api\/)[^/]+$/, '$1{code}')

let imageChecks = 0

/**
 * A stored image is there exactly while its code is held. Asked for from a new address each time:
 * whether a read is charged depends on whether the image is stored already.
 */
async function checkImage({ model }: Scene, service: Service, { path }: Call): Promise<void> {
  const from = `2001:db8:ffff:${(imageChecks++ & 0xffff).toString(16)}::1`
  const code = decodeURIComponent(path.slice('/qr/'.length))
  if (!/^\w+$/.test(code)) return
  const file = `/cdn/qr/${code.toUpperCase()}.png`
  const { status, bytes } = await service.ask({ method: 'GET', path: file, from })
  const wanted = model.links.find(code) ? 200 : 404
  if (status !== wanted) throw new Error(`${file} answers ${status}, not ${wanted}`)
  const isPng = Buffer.from(bytes.subarray(1, 4)).toString() === 'PNG'
  if (isPng !== (wanted === 200)) throw new Error(`${file} is no image`)
}

class Act extends Always {
  readonly #about: string
  readonly #act: (scene: Scene, service: Service) => void | Promise<void>

  constructor(about: string, act: (scene: Scene, service: Service) => void | Promise<void>) {
    super()
    this.#about = about
    this.#act = act
  }

  async run(scene: Scene, service: Service): Promise<void> {
    await this.#act(scene, service)
  }

  toString(): string {
    return this.#about
  }
}

const LATER = 'later.example'

const restart = fc
  .record({ how: fc.constantFrom('stop' as const, 'kill' as const), isLater: fc.boolean() })
  .map(
    ({ how, isLater }) =>
      new Act(`${how} and start`, async (scene, service) => {
        const { model, addresses } = scene
        const from = addresses[0] ?? ''
        // Hits that nobody has had the time to count.
        const code = model.links.all.findLast(({ url }) => url !== null)?.code ?? 'NOBODY'
        for (let hit = 0; hit < 3; hit++) {
          await ask(scene, service, { method: 'GET', path: `/${code}`, from })
        }
        await service.end(how)
        await service.start(isLater ? [LATER] : [])
        model.links.settings.blockedHosts = service.blocked
        model.windows.forget()
        await ask(scene, service, { method: 'GET', path: `/api/lookup/${code}`, from })
        await ask(scene, service, { method: 'GET', path: '/api/status', from })
      }),
  )

const MOVES = [1, 999, 1000, 17_345, 30_000, 59_999, 60_000, 60_001, HOUR, 24 * HOUR - 1, 24 * HOUR]
const move = fc
  .record({ ms: fc.constantFrom(...MOVES), step: fc.constantFrom(0, 0, 0, 1, -1) })
  .map(({ ms, step }) => {
    const change = { ms: step === 0 ? ms : ms * step, step: step !== 0 }
    return new Act(`${step === 0 ? 'wait' : 'set the clock by'} ${change.ms} ms`, (_, service) =>
      service.move(change),
    )
  })

const maintain = fc.constantFrom(0, 0, 0, 1, 1500, 60_000).map(
  (ms) =>
    new Act(ms === 0 ? 'end maintenance' : `maintenance for ${ms} ms`, ({ model }, service) => {
      model.maintenanceUntil = ms === 0 ? 0 : service.time.now + ms
      service.maintain(model.maintenanceUntil)
    }),
)

const changeKey = fc
  .record({ account: fc.nat(3), isRotated: fc.boolean(), isAtOnce: fc.boolean() })
  .map(({ account, isRotated, isAtOnce }) => {
    const change = isRotated ? 'rotate' : 'revoke'
    const about = `${change} key of ${account}${isAtOnce ? ' at once' : ''}`
    return new Act(about, async (scene, service) => {
      const owner = scene.model.accounts[account]
      if (!owner) return
      endKeys(owner, service.time.now, isAtOnce)
      if (isRotated) {
        const key = service.rotateKey(owner.name, isAtOnce)
        owner.keys.push({ key, endsAt: Number.POSITIVE_INFINITY })
      } else service.revokeKey(owner.name, isAtOnce)
      for (const { key } of owner.keys) await ask(scene, service, useOf(scene, key))
    })
  })

/** A request that tells whether a key works. */
const useOf = ({ addresses }: Scene, key: string): Call => {
  return { method: 'GET', path: '/api/list?limit=1', key, from: addresses[0] ?? '' }
}

const endOfKey = fc.nat(3).map(
  (account) =>
    new Act(`wait for the end of a key of ${account}`, async (scene, service) => {
      const { now } = service.time
      const ending = scene.model.accounts[account]?.keys.find(
        ({ endsAt }) => endsAt > now && endsAt < Number.POSITIVE_INFINITY,
      )
      if (!ending) return
      await service.move({ ms: ending.endsAt - now - 1, step: false })
      await ask(scene, service, useOf(scene, ending.key))
      await service.move({ ms: 1, step: false })
      await ask(scene, service, useOf(scene, ending.key))
    }),
)

const swapCase = (text: string) =>
  [...text]
    .map((one) => (one === one.toUpperCase() ? one.toLowerCase() : one.toUpperCase()))
    .join('')

/**
 * A search for one of the caller's newest links right behind a change: an index may have followed,
 * or not.
 */
const search = fc
  .record({
    change: plans,
    inCode: fc.boolean(),
    link: fc.nat(3),
    from: fc.nat(22),
    length: fc.integer({ min: 1, max: 6 }),
  })
  .map(
    ({ change, inCode, link, from, length }) =>
      new Act('a change and a search', async (scene, service) => {
        const call = change.make(scene)
        await ask(scene, service, call)
        const { key = '' } = call
        const { code = '', url = '' } =
          scene.model.links.all
            .filter(({ owner }) => owner.keys.some((one) => one.key === key))
            .at(-1 - link) ?? {}
        const whole = inCode ? code.slice(from % 4) : (url ?? code).slice(from)
        const text = swapCase(whole.slice(0, length))
        const path = `/api/list?search=${encodeURIComponent(text)}`
        await ask(scene, service, { method: 'GET', path, key, from: call.from })
      }),
  )

const changePlan = fc
  .record({ account: fc.nat(3), plan: fc.constantFrom<AccountPlan>('free', 'pro', 'enterprise') })
  .map(
    ({ account, plan }) =>
      new Act(`plan ${plan} for ${account}`, ({ model }, service) => {
        const owner = model.accounts[account]
        if (!owner) return
        owner.plan = plan
        service.setPlan(owner.name, plan)
      }),
  )

const asks = plans.map((plan) => new Ask(plan, 1))
const repeated = fc
  .record({ plan: plans, times: fc.constantFrom(2, 3, 8, 13, 61, 302) })
  .map(({ plan, times }) => new Ask(plan, times))

const together = fc
  .record({ plan: plans, times: fc.integer({ min: 2, max: 8 }) })
  .map(({ plan, times }) => new Ask(plan, times, true))

export const commands: fc.Arbitrary<Command>[] = [
  fc.oneof<fc.MaybeWeightedArbitrary<Command>[]>(
    { weight: 240, arbitrary: asks },
    { weight: 10, arbitrary: repeated },
    { weight: 20, arbitrary: together },
    { weight: 24, arbitrary: move },
    { weight: 8, arbitrary: changeKey },
    { weight: 5, arbitrary: endOfKey },
    { weight: 24, arbitrary: search },
    { weight: 5, arbitrary: changePlan },
    { weight: 5, arbitrary: maintain },
    { weight: 3, arbitrary: restart },
  ),
]
