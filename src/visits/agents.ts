import Bowser from 'bowser'
import { AGENT_MAX, findBot } from './bots.ts'
import { NAMES, OTHER, type VisitKey, visitKey } from './values.ts'

/** User-Agents in each of two generations of the cache. */
const CACHED_MAX = 4096

/** Browsers that count as another one, or have a shorter name. */
const SAME_AS: Readonly<Record<string, string>> = {
  Chromium: 'Chrome',
  Focus: 'Firefox',
  LibreWolf: 'Firefox',
  'Samsung Internet for Android': 'Samsung Internet',
}

const valuesByName = (names: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(Object.entries(names).map(([value, name]) => [name, value]))

const BROWSERS = valuesByName(NAMES.browser)
const SYSTEMS = valuesByName(NAMES.os)

/** Browsers inside other apps, which send the name of the app. */
const IN_APP = new RegExp(
  [
    'FBA[NV]|FB_IAB|Instagram|\\bLine/|MicroMessenger|musical_ly|BytedanceWebview',
    'Snapchat|Pinterest|LinkedInApp|Twitter for|GSA/|; wv\\)',
  ].join('|'),
)
const HUAWEI = /HuaweiBrowser/

/** The values of a User-Agent: that of a bot, or device, browser and operating system. */
function classify(agent: string): readonly VisitKey[] {
  const bot = findBot(agent)
  if (bot !== undefined) return [visitKey('bot', bot)]
  const { browser, os, platform } = Bowser.parse(agent)
  return [
    visitKey('device', deviceOf(platform.type)),
    visitKey('browser', browserOf(agent, browser.name)),
    visitKey('os', SYSTEMS.get(os.name ?? '') ?? OTHER),
  ]
}

function browserOf(agent: string, name = ''): string {
  if (IN_APP.test(agent)) return 'in-app'
  if (HUAWEI.test(agent)) return 'huawei'
  return BROWSERS.get(SAME_AS[name] ?? name) ?? OTHER
}

function deviceOf(type = OTHER): string {
  if (type === 'mobile') return 'phone'
  return type in NAMES.device ? type : OTHER
}

/**
 * Classifies User-Agents, and remembers the results of the last 4,096 to 8,192 of them: a parse
 * takes about 20 µs, and most visitors share a few thousand texts.
 */
export function agentClassifier(): (agent: string) => readonly VisitKey[] {
  let young = new Map<string, readonly VisitKey[]>()
  let old = young
  return (whole) => {
    const agent = whole.slice(0, AGENT_MAX)
    let keys = young.get(agent)
    if (keys) return keys
    keys = old.get(agent) ?? classify(agent)
    if (young.size >= CACHED_MAX) {
      old = young
      young = new Map()
    }
    young.set(agent, keys)
    return keys
  }
}
