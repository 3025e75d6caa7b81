import { isbot } from 'isbot'
import { OTHER } from './values.ts'

const BOT_FAMILIES = {
  preview: 'Link preview',
  search: 'Search engine',
  ai: 'AI',
  monitor: 'Monitor',
  seo: 'SEO',
  tool: 'Program',
} as const

type BotFamily = keyof typeof BOT_FAMILIES

interface Bot {
  family: BotFamily
  name: string
  pattern: RegExp
}

/**
 * The bots that are told apart, by the stored value. The first pattern that matches decides: some
 * bots also name others. Only these values are stored, so that nothing of a User-Agent is.
 */
const BOTS: Record<string, Bot> = {
  imessage: preview('iMessage', /facebookexternalhit.*Twitterbot/i),
  whatsapp: preview('WhatsApp', /WhatsApp/i),
  slack: preview('Slack', /Slack/i),
  telegram: preview('Telegram', /TelegramBot/i),
  x: preview('X', /Twitterbot/i),
  discord: preview('Discord', /Discordbot/i),
  meta: { family: 'ai', name: 'Meta AI', pattern: /meta-external|FacebookBot/i },
  facebook: preview('Facebook', /facebookexternalhit|Facebot|facebookcatalog/i),
  linkedin: preview('LinkedIn', /LinkedInBot/i),
  skype: preview('Skype and Teams', /SkypeUriPreview|ms-office|Microsoft Office|MSTeams/i),
  pinterest: preview('Pinterest', /Pinterest/i),
  reddit: preview('Reddit', /redditbot/i),
  mastodon: preview('Mastodon', /Mastodon|Pleroma|Misskey|Akkoma|GoToSocial/i),
  bluesky: preview('Bluesky', /Bluesky|cardyb/i),
  viber: preview('Viber', /Viber/i),
  line: preview('LINE', /Line-?spider|linebot/i),
  kakao: preview('KakaoTalk', /kakaotalk-scrap/i),
  vk: preview('VK', /vkShare/i),
  snapchat: preview('Snapchat', /Snap URL Preview|Snapchat/i),
  embedly: preview('Embedly', /Embedly|iframely/i),
  gptbot: { family: 'ai', name: 'OpenAI', pattern: /GPTBot|ChatGPT-User|OAI-SearchBot/i },
  claude: { family: 'ai', name: 'Anthropic', pattern: /Claude|anthropic/i },
  perplexity: { family: 'ai', name: 'Perplexity', pattern: /Perplexity/i },
  commoncrawl: { family: 'ai', name: 'Common Crawl', pattern: /CCBot/i },
  bytespider: { family: 'ai', name: 'Bytespider', pattern: /Bytespider|TikTokSpider/i },
  amazon: { family: 'ai', name: 'Amazon', pattern: /Amazonbot/i },
  google: { family: 'search', name: 'Google', pattern: /Googlebot|Google-|AdsBot|Mediapartners/i },
  bing: { family: 'search', name: 'Bing', pattern: /bingbot|BingPreview|msnbot|adidxbot/i },
  yandex: { family: 'search', name: 'Yandex', pattern: /Yandex/i },
  baidu: { family: 'search', name: 'Baidu', pattern: /Baidu/i },
  duckduckgo: { family: 'search', name: 'DuckDuckGo', pattern: /DuckDuck/i },
  apple: { family: 'search', name: 'Apple', pattern: /Applebot/i },
  yahoo: { family: 'search', name: 'Yahoo', pattern: /Yahoo|Slurp/i },
  petal: { family: 'search', name: 'PetalBot', pattern: /PetalBot/i },
  seznam: { family: 'search', name: 'Seznam', pattern: /Seznam/i },
  naver: { family: 'search', name: 'Naver', pattern: /Yeti|naver/i },
  archive: { family: 'search', name: 'Internet Archive', pattern: /archive\.org|ia_archiver/i },
  ahrefs: { family: 'seo', name: 'Ahrefs', pattern: /Ahrefs/i },
  semrush: { family: 'seo', name: 'Semrush', pattern: /Semrush/i },
  majestic: { family: 'seo', name: 'Majestic', pattern: /MJ12bot/i },
  moz: { family: 'seo', name: 'Moz', pattern: /dotbot|rogerbot/i },
  dataforseo: { family: 'seo', name: 'DataForSEO', pattern: /DataForSeo/i },
  uptimerobot: { family: 'monitor', name: 'UptimeRobot', pattern: /UptimeRobot/i },
  pingdom: { family: 'monitor', name: 'Pingdom', pattern: /Pingdom/i },
  statuscake: { family: 'monitor', name: 'StatusCake', pattern: /StatusCake/i },
  betteruptime: { family: 'monitor', name: 'Better Stack', pattern: /Better ?(?:Uptime|Stack)/i },
  uptimekuma: { family: 'monitor', name: 'Uptime Kuma', pattern: /Uptime-?Kuma/i },
  site24x7: { family: 'monitor', name: 'Site24x7', pattern: /Site24x7/i },
  lighthouse: { family: 'monitor', name: 'Lighthouse', pattern: /Lighthouse|PageSpeed/i },
  curl: { family: 'tool', name: 'curl', pattern: /\bcurl\//i },
  wget: { family: 'tool', name: 'Wget', pattern: /\bWget/i },
  python: { family: 'tool', name: 'Python', pattern: /python|aiohttp|httpx|Scrapy/i },
  go: { family: 'tool', name: 'Go', pattern: /Go-http-client|\bresty\b/i },
  java: { family: 'tool', name: 'Java', pattern: /\bJava\/|okhttp|Apache-HttpClient|Jetty/i },
  node: { family: 'tool', name: 'Node.js', pattern: /node-fetch|axios|undici|\bgot\b|\bnode\b/i },
  php: { family: 'tool', name: 'PHP', pattern: /\bPHP|Guzzle/i },
  ruby: { family: 'tool', name: 'Ruby', pattern: /\bRuby|Faraday/i },
  perl: { family: 'tool', name: 'Perl', pattern: /libwww-perl|\bLWP/i },
  headless: { family: 'tool', name: 'Headless browser', pattern: /Headless|Puppeteer|Playwright/i },
}

function preview(name: string, pattern: RegExp): Bot {
  return { family: 'preview', name, pattern }
}

/** Bots that `isbot` does not recognize. */
const ALSO_BOTS = /ms-office|Microsoft Office|MSTeams|SkypeUriPreview/i

/** The stored value of a bot with this User-Agent; undefined for a person. */
export function findBot(agent: string): string | undefined {
  if (agent.trim() === '') return 'empty'
  if (!isbot(agent) && !ALSO_BOTS.test(agent)) return undefined
  for (const [value, { pattern }] of Object.entries(BOTS)) if (pattern.test(agent)) return value
  return OTHER
}

/** Longest User-Agent that is read. */
export const AGENT_MAX = 512

/** Whether an app or a site with this User-Agent shows a preview of links that are sent in it. */
export const isLinkPreview = (agent: string): boolean =>
  BOTS[findBot(agent.slice(0, AGENT_MAX)) ?? '']?.family === 'preview'

const PREFETCH = /\bprefetch\b|\bprerender\b/i

/** Whether a browser fetches a link in advance: nobody may ever see the destination. */
export const isPrefetch = (get: (name: string) => string | null | undefined): boolean =>
  PREFETCH.test([get('purpose'), get('sec-purpose')].join())

/** What a page shows for a stored value, such as “Googlebot (search engine)”. */
export function botName(value: string): string {
  const bot = BOTS[value]
  return bot ? `${bot.name} (${BOT_FAMILIES[bot.family]})` : value
}
