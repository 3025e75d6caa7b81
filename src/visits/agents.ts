import Bowser from 'bowser'
import { findBot } from './bots.ts'
import { OTHER, type VisitKey, visitKey } from './values.ts'

/** Longest User-Agent that is read. */
const AGENT_MAX = 512
/** User-Agents in each of two generations of the cache. */
const CACHED_MAX = 4096

const BROWSERS: Readonly<Record<string, string>> = {
  Chrome: 'chrome',
  Chromium: 'chrome',
  Safari: 'safari',
  Firefox: 'firefox',
  Focus: 'firefox',
  LibreWolf: 'firefox',
  'Microsoft Edge': 'edge',
  'Samsung Internet for Android': 'samsung',
  Opera: 'opera',
  'Opera Coast': 'opera',
  WeChat: 'in-app',
  'Google Search': 'in-app',
  'NAVER Whale Browser': OTHER,
  Brave: 'brave',
  Vivaldi: 'vivaldi',
  DuckDuckGo: 'duckduckgo',
  'Yandex Browser': 'yandex',
  'UC Browser': 'uc',
  'Internet Explorer': 'ie',
}

const SYSTEMS: Readonly<Record<string, string>> = {
  Windows: 'windows',
  'Windows Phone': OTHER,
  macOS: 'macos',
  iOS: 'ios',
  Android: 'android',
  Linux: 'linux',
  'Chrome OS': 'chromeos',
  HarmonyOS: 'harmonyos',
}

const DEVICES: Readonly<Record<string, string>> = {
  desktop: 'desktop',
  mobile: 'phone',
  tablet: 'tablet',
  tv: 'tv',
}

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
    visitKey('device', DEVICES[platform.type ?? ''] ?? OTHER),
    visitKey('browser', browserOf(agent, browser.name)),
    visitKey('os', SYSTEMS[os.name ?? ''] ?? OTHER),
  ]
}

function browserOf(agent: string, name = ''): string {
  if (IN_APP.test(agent)) return 'in-app'
  if (HUAWEI.test(agent)) return 'huawei'
  return BROWSERS[name] ?? OTHER
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
