import { LRUCache } from 'lru-cache'
import type { Client } from '../hot/client-address.ts'
import type { RequestHeaders } from '../http/context.ts'
import type { Clock } from '../lib/clock.ts'
import type { LinkRules } from '../links/destination.ts'
import {
  type Device,
  type Language,
  languageOf,
  matches,
  readQuery,
  type System,
  type Visitor,
  WeekClock,
} from '../links/destination-rules.ts'
import { type CountrySettings, countryFinder, isCountrySent } from '../visits/country-header.ts'
import { weightsOf } from './visitor-page.ts'

/** Which of its destinations a link has for a request. */

interface VisitRequest extends RequestHeaders {
  /** Without its question mark. */
  readonly query: string
}

interface ChooserOptions extends CountrySettings {
  clock: Clock
  /** Only the control thread has the file of countries. */
  isFileElsewhere?: boolean
}

/** HOT PATH, for links with `destinations`. */
export class DestinationChooser {
  readonly #options: ChooserOptions
  readonly #week = new WeekClock()
  readonly #findCountry

  constructor(options: ChooserOptions) {
    this.#options = options
    this.#findCountry = countryFinder(options)
  }

  /** Whether only the control thread can decide. */
  isLeft({ destinations }: LinkRules, client: Client): boolean {
    if (!destinations || !this.#options.isFileElsewhere) return false
    if (isCountrySent(this.#options.countryHeader, client)) return false
    return destinations.some(({ when }) => when.country)
  }

  /** `Location` of the first destination whose conditions hold; undefined if there is none. */
  find({ destinations }: LinkRules, request: VisitRequest, client: Client): string | undefined {
    if (!destinations) return undefined
    const week = this.#week
    const country = () => this.#findCountry(client, request)
    const visitor = new RequestVisitor(request, { now: this.#options.clock(), week, country })
    return destinations.find(({ when }) => matches(when, visitor))?.location
  }
}

interface Around {
  now: number
  week: WeekClock
  country: () => string | undefined
}

const NONE: readonly Language[] = []
const NO_PARAMETERS: Visitor['query'] = new Map()

/** The sender of a request. Each header is read at most once. */
class RequestVisitor implements Visitor {
  readonly now: number
  readonly #request: VisitRequest
  readonly #around: Around
  #agent: Agent | undefined
  #languages: readonly Language[] | undefined
  #country: string | undefined
  #query: Visitor['query'] | undefined

  constructor(request: VisitRequest, around: Around) {
    this.now = around.now
    this.#request = request
    this.#around = around
  }

  get os(): System | undefined {
    return this.#readAgent().os
  }

  get device(): Device | undefined {
    const { device } = this.#readAgent()
    return device === 'none' ? undefined : device
  }

  get languages(): readonly Language[] {
    if (this.#languages) return this.#languages
    const header = this.#request.get('accept-language')
    this.#languages = header === null ? NONE : preferredLanguages(header)
    return this.#languages
  }

  get country(): string | undefined {
    this.#country ??= this.#around.country() ?? ''
    return this.#country
  }

  get query(): Visitor['query'] {
    const { query } = this.#request
    this.#query ??= query === '' ? NO_PARAMETERS : readQuery(query)
    return this.#query
  }

  minuteOfWeek(zone: string): number | undefined {
    return this.#around.week.minuteOfWeek(zone, this.now)
  }

  #readAgent(): Agent {
    if (this.#agent) return this.#agent
    const { os, device } = classify(this.#request.get('user-agent') ?? '')
    const platform = platformOf(this.#request.get('sec-ch-ua-platform'))
    const mobile = this.#request.get('sec-ch-ua-mobile')?.trim()
    const system = platform ?? os
    // Tablets with Android say that they are not mobile, and so do televisions.
    const notMobile = system === 'android' || system === 'ios' ? 'tablet' : 'desktop'
    const hint = mobile === '?1' ? 'phone' : mobile === '?0' ? notMobile : undefined
    this.#agent = { os: system, device: device === 'none' ? device : (hint ?? device) }
    return this.#agent
  }
}

/** The sender of a request, where no country is known. */
export const visitorOf = (request: VisitRequest, now: number): Visitor =>
  new RequestVisitor(request, { now, week: new WeekClock(), country: () => undefined })

/** The entries with the highest weight above 0, apart from `*`. */
export function preferredLanguages(header: string): Language[] {
  const weights = weightsOf(header)
  const most = Math.max(...weights.values())
  if (most === 0) return []
  const tags = [...weights.keys()].filter((tag) => tag !== '*' && weights.get(tag) === most)
  return tags.map(languageOf)
}

const PLATFORMS: ReadonlyMap<string, System> = new Map([
  ['android', 'android'],
  ['ios', 'ios'],
  ['windows', 'windows'],
  ['macos', 'macos'],
  ['linux', 'linux'],
  ['chrome os', 'chromeos'],
  ['chromium os', 'chromeos'],
])

const PLATFORM_MAX = 64

/** A text in quotes. */
const platformOf = (header: string | null): System | undefined =>
  header === null || header.length > PLATFORM_MAX
    ? undefined
    : PLATFORMS.get(header.replaceAll('"', '').trim().toLowerCase())

interface Agent {
  os: System | undefined
  /** None: hints do not change it. */
  device: Device | 'none' | undefined
}

/** Characters of a User-Agent that are read. The time of each pattern is linear. */
const AGENT_MAX = 512
const AGENTS_KEPT = 1024

/** Browsers of iPhone and iPad that claim to be on a Mac. Safari claims it without any sign. */
const IOS_AS_MAC =
  /^(?=.*Macintosh).*(?:CriOS|FxiOS|EdgiOS|OPiOS|OP[TX]\/|GSA\/|DuckDuckGo\/|FBIOS|Mobile\/)/

/** The first pattern decides. */
const SYSTEM_PATTERNS: readonly [RegExp, System | undefined][] = [
  [/Windows Phone|IEMobile|Tizen|Web0S|webOS|KAIOS|BSD|DragonFly|SunOS/, undefined],
  [/iPhone|iPad|iPod|MobileSafari\/.*Darwin\//, 'ios'],
  [IOS_AS_MAC, 'ios'],
  [/CrOS/, 'chromeos'],
  [/Android|Silk/, 'android'],
  [/Windows/, 'windows'],
  [/Macintosh|Mac OS X/, 'macos'],
  [/Linux|X11/, 'linux'],
]

const SCREENS =
  /TV(?![a-z])|BRAVIA|\bAFT[A-Z]|Tizen|Web0S|webOS|CrKey|SHIELD(?! Tablet)|NetCast|VIERA|Roku/
const CONSOLES = /PlayStation|Xbox|Nintendo|Oculus|\bQuest\b/

const DEVICE_PATTERNS: readonly [RegExp, Device | 'none' | undefined][] = [
  [SCREENS, 'none'],
  [CONSOLES, 'none'],
  [/iPad/, 'tablet'],
  [IOS_AS_MAC, 'tablet'],
  [/iPhone|iPod|Mobi|Opera Mini/, 'phone'],
  [/^Mozilla\/.*Android/, 'tablet'],
  [/Windows NT/, 'desktop'],
  [/Tablet|PlayBook|Kindle|Silk/, 'tablet'],
  // Apps that do not say more.
  [/Android/, undefined],
  [/Macintosh|X11|CrOS|Linux/, 'desktop'],
]

const agents = new LRUCache<string, Agent>({ max: AGENTS_KEPT })

/** Values are undefined for a system and a device that no condition names. */
function classify(whole: string): Agent {
  const text = whole.slice(0, AGENT_MAX)
  const known = agents.get(text)
  if (known) return known
  const agent = { os: firstOf(SYSTEM_PATTERNS, text), device: firstOf(DEVICE_PATTERNS, text) }
  agents.set(text, agent)
  return agent
}

const firstOf = <Value>(patterns: readonly [RegExp, Value][], text: string): Value | undefined =>
  patterns.find(([pattern]) => pattern.test(text))?.[1]
