/**
 * What is stored of a redirect: values of some kinds, each counted by itself. A person's redirect
 * has a value of every kind but `bot`; that of a bot has only one of `bot`.
 */

export const VISIT_KINDS = ['referrer', 'country', 'device', 'browser', 'os', 'bot'] as const
export type VisitKind = (typeof VISIT_KINDS)[number]
/** Also counted: `ref` of the address, whatever the source is. Codes on paper have such words. */
export const STORED_KINDS = [...VISIT_KINDS, 'scan'] as const
export type StoredKind = (typeof STORED_KINDS)[number]

/** A value beyond the limits of a row, and one that no list contains. */
export const OTHER = 'other'
/** No referrer: typed, scanned, or followed in an app. */
export const DIRECT = 'direct'
export const UNKNOWN_COUNTRY = 'unknown'

/** Values that a row of one link or account contains at most; further ones count as `other`. */
export const VALUES_MAX: Record<StoredKind, { link: number; account: number }> = {
  referrer: { link: 100, account: 500 },
  country: { link: 250, account: 250 },
  device: { link: 20, account: 20 },
  browser: { link: 20, account: 20 },
  os: { link: 20, account: 20 },
  bot: { link: 100, account: 100 },
  scan: { link: 100, account: 200 },
}

/**
 * The values of these kinds, with their names. A value is stored as its index in the list, which
 * takes less space than its text: append only. Other values are stored as texts.
 */
export const NAMES = {
  referrer: { [DIRECT]: 'Direct, app or QR code', [OTHER]: 'Other sources' },
  country: { [UNKNOWN_COUNTRY]: 'Unknown', [OTHER]: 'Other' },
  device: { desktop: 'Desktop', phone: 'Phone', tablet: 'Tablet', tv: 'TV', [OTHER]: 'Other' },
  browser: {
    chrome: 'Chrome',
    safari: 'Safari',
    firefox: 'Firefox',
    edge: 'Microsoft Edge',
    samsung: 'Samsung Internet',
    opera: 'Opera',
    'in-app': 'Browser inside an app',
    brave: 'Brave',
    vivaldi: 'Vivaldi',
    duckduckgo: 'DuckDuckGo',
    yandex: 'Yandex Browser',
    uc: 'UC Browser',
    huawei: 'Huawei Browser',
    ie: 'Internet Explorer',
    [OTHER]: 'Other',
  },
  os: {
    windows: 'Windows',
    macos: 'macOS',
    ios: 'iOS',
    android: 'Android',
    linux: 'Linux',
    chromeos: 'Chrome OS',
    harmonyos: 'HarmonyOS',
    [OTHER]: 'Other',
  },
  bot: { [OTHER]: 'Other bots', empty: 'No User-Agent', prefetch: 'Prefetch of a browser' },
  scan: { [OTHER]: 'Other codes' },
} as const satisfies Record<StoredKind, Record<string, string>>

/** The values of each kind in the order of their stored numbers. */
export const NUMBERED: Record<StoredKind, readonly string[]> = {
  referrer: Object.keys(NAMES.referrer),
  country: [...Object.keys(NAMES.country), ...twoLetters()],
  device: Object.keys(NAMES.device),
  browser: Object.keys(NAMES.browser),
  os: Object.keys(NAMES.os),
  bot: Object.keys(NAMES.bot),
  scan: Object.keys(NAMES.scan),
}

/** AA to ZZ: every code of ISO 3166-1 alpha-2 has its index. */
function twoLetters(): string[] {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  return letters.flatMap((first) => letters.map((second) => first + second))
}

/** The end of the words of numbered labels: `table-7`. */
export const LABEL_NUMBER = /-\d{1,3}$/

/** Whether a value of `scan` is a word of codes, or one of their labels with its number. */
export const isWordOf = (refs: readonly string[], value: string): boolean =>
  refs.includes(value) || refs.includes(value.replace(LABEL_NUMBER, ''))

/** A value together with its kind, as a key of a Map: the kind's number and the value. */
export type VisitKey = string

export const visitKey = (kind: StoredKind, value: string): VisitKey =>
  `${STORED_KINDS.indexOf(kind)}${value}`

export const kindOf = (key: VisitKey): StoredKind => STORED_KINDS[Number(key[0])] as StoredKind
export const visitValue = (key: VisitKey): string => key.slice(1)
