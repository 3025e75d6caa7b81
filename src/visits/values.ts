/**
 * What is stored of a redirect: values of some kinds, each counted by itself. A person's redirect
 * has a value of every kind but `bot`; that of a bot has only one of `bot`.
 */

export const VISIT_KINDS = ['referrer', 'country', 'device', 'browser', 'os', 'bot'] as const
export type VisitKind = (typeof VISIT_KINDS)[number]

/** A value beyond the limits of a row, and one that no list contains. */
export const OTHER = 'other'
/** No referrer: typed, scanned, or followed in an app. */
export const DIRECT = 'direct'
export const UNKNOWN_COUNTRY = 'unknown'

/** Values that a row of one link or account contains at most; further ones count as `other`. */
export const VALUES_MAX: Record<VisitKind, { link: number; account: number }> = {
  referrer: { link: 100, account: 500 },
  country: { link: 250, account: 250 },
  device: { link: 20, account: 20 },
  browser: { link: 20, account: 20 },
  os: { link: 20, account: 20 },
  bot: { link: 100, account: 100 },
}

/**
 * Values with a number in the stored rows, which takes less space than their text. The numbers are
 * places in these lists: append only. A text that is not listed is stored as it is.
 */
export const NUMBERED: Record<VisitKind, readonly string[]> = {
  referrer: [
    DIRECT,
    OTHER,
    'google.com',
    'bing.com',
    'duckduckgo.com',
    'yahoo.com',
    'yandex.ru',
    'baidu.com',
    'ecosia.org',
    'facebook.com',
    'l.facebook.com',
    'lm.facebook.com',
    'm.facebook.com',
    'instagram.com',
    'l.instagram.com',
    't.co',
    'x.com',
    'twitter.com',
    'linkedin.com',
    'lnkd.in',
    'reddit.com',
    'out.reddit.com',
    'youtube.com',
    'news.ycombinator.com',
    'github.com',
    'pinterest.com',
    'tiktok.com',
    'web.whatsapp.com',
    'web.telegram.org',
    'teams.microsoft.com',
    'mail.google.com',
    'com.google.android.gm',
    'com.google.android.googlequicksearchbox',
    'org.telegram.messenger',
    'com.slack',
    'chatgpt.com',
    'bsky.app',
    'go.bsky.app',
    'mastodon.social',
    'threads.net',
    'l.threads.com',
    'vk.com',
    'weibo.com',
    'medium.com',
    'wikipedia.org',
    'en.wikipedia.org',
  ],
  country: [UNKNOWN_COUNTRY, OTHER, ...twoLetters()],
  device: ['desktop', 'phone', 'tablet', 'tv', OTHER],
  browser: [
    'chrome',
    'safari',
    'firefox',
    'edge',
    'samsung',
    'opera',
    'in-app',
    'brave',
    'vivaldi',
    'duckduckgo',
    'yandex',
    'uc',
    'huawei',
    'ie',
    OTHER,
  ],
  os: ['windows', 'macos', 'ios', 'android', 'linux', 'chromeos', 'harmonyos', OTHER],
  bot: [OTHER, 'empty', 'prefetch'],
}

/** AA to ZZ: every code of ISO 3166-1 alpha-2 has its place. */
function twoLetters(): string[] {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  return letters.flatMap((first) => letters.map((second) => first + second))
}

/** A value together with its kind, as a key of a Map: the kind's number and the value. */
export type VisitKey = string

export const visitKey = (kind: VisitKind, value: string): VisitKey =>
  `${VISIT_KINDS.indexOf(kind)}${value}`

export const kindOf = (key: VisitKey): VisitKind => VISIT_KINDS[Number(key[0])] as VisitKind
export const visitValue = (key: VisitKey): string => key.slice(1)
