import { botName } from './bots.ts'
import { NAMES, type StoredKind } from './values.ts'

/** What pages and responses show for stored values. */

/** Hosts of one source, whose first one stands for all. Applied when values are read. */
const SOURCES: readonly { name: string; hosts: RegExp; value: string }[] = [
  source(
    'Google',
    'google.com',
    /^(?:google\.[a-z.]{2,6}|com\.google\.android\.\w*quicksearch\w*)$/,
  ),
  source('Gmail', 'mail.google.com', /^(?:mail\.google\.com|com\.google\.android\.gm)$/),
  source('Facebook', 'facebook.com', /^(?:[a-z]{1,3}\.)?facebook\.com$/),
  source('Instagram', 'instagram.com', /^(?:l\.)?instagram\.com$/),
  source('X', 'x.com', /^(?:t\.co|x\.com|(?:mobile\.)?twitter\.com)$/),
  source('LinkedIn', 'linkedin.com', /^(?:lnkd\.in|(?:[a-z]{2}\.)?linkedin\.com)$/),
  source('Reddit', 'reddit.com', /^(?:(?:old|out|new|m)\.)?reddit\.com$/),
  source('YouTube', 'youtube.com', /^(?:(?:m|music)\.)?youtube\.com$|^youtu\.be$/),
  source('Bing', 'bing.com', /^(?:cn\.)?bing\.com$/),
  source('DuckDuckGo', 'duckduckgo.com', /^(?:html\.)?duckduckgo\.com$/),
  source('Yahoo', 'yahoo.com', /^(?:(?:[a-z]{2}\.)?(?:search\.)?)yahoo\.(?:com|co\.jp)$/),
  source('Yandex', 'yandex.ru', /^yandex\.[a-z.]{2,6}$/),
  source('Telegram', 'telegram.org', /^(?:web\.telegram\.org|org\.telegram\.messenger|t\.me)$/),
  source('WhatsApp', 'whatsapp.com', /^(?:web\.whatsapp\.com|com\.whatsapp)$/),
  source('Slack', 'slack.com', /^(?:(?:app\.)?slack\.com|com\.slack)$/),
  source('Bluesky', 'bsky.app', /^(?:go\.)?bsky\.app$/),
  source('Threads', 'threads.com', /^(?:l\.)?threads\.(?:com|net)$/),
  source('Pinterest', 'pinterest.com', /^(?:[a-z]{2}\.)?pinterest\.[a-z.]{2,6}$/),
  source('Hacker News', 'news.ycombinator.com', /^news\.ycombinator\.com$/),
]

function source(name: string, value: string, hosts: RegExp) {
  return { name, value, hosts }
}

/** The value that stands for several stored ones: `google.com` for `google.de`. */
export function groupOf(kind: StoredKind, value: string): string {
  if (kind !== 'referrer') return value
  return SOURCES.find(({ hosts }) => hosts.test(value))?.value ?? value
}

const COUNTRIES = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' })

export function nameOf(kind: StoredKind, value: string): string {
  const names: Readonly<Record<string, string>> = NAMES[kind]
  // Visitors choose values such as `constructor`.
  if (Object.hasOwn(names, value)) return names[value] as string
  if (kind === 'bot') return botName(value)
  if (kind === 'country') return /^[A-Z]{2}$/.test(value) ? (COUNTRIES.of(value) ?? value) : value
  if (kind === 'referrer') return SOURCES.find((one) => one.value === value)?.name ?? value
  return value
}
