import { expect, test } from 'bun:test'
import crawlers from 'crawler-user-agents'
import UserAgent from 'user-agents'
import { agentClassifier } from './agents.ts'
import { findBot } from './bots.ts'
import { visitKey } from './values.ts'

interface Drawn {
  userAgent: string
  deviceCategory: string
}

/** How many browsers are drawn, by how often they occur. */
const DRAWN = 5000

test('at least 99 % of known crawlers are bots', () => {
  const agents = crawlers.flatMap(({ instances }) => instances)
  const missed = agents.filter((agent) => findBot(agent) === undefined)
  expect(agents.length).toBeGreaterThan(2000)
  expect(missed.length / agents.length).toBeLessThan(0.01)
})

test('at most 0.1 % of browsers are taken for bots, and phones, tablets and desktops are told apart', () => {
  const classify = agentClassifier()
  let bots = 0
  let rightDevices = 0
  for (let i = 0; i < DRAWN; i++) {
    const { userAgent, deviceCategory } = new UserAgent().data as unknown as Drawn
    const keys = classify(userAgent)
    if (keys.length === 1) bots++
    const device = deviceCategory === 'mobile' ? 'phone' : deviceCategory
    if (keys.includes(visitKey('device', device))) rightDevices++
  }
  expect(bots / DRAWN).toBeLessThanOrEqual(0.001)
  expect(rightDevices / DRAWN).toBeGreaterThan(0.95)
})

const previews = [
  ['whatsapp', 'WhatsApp/2.23.20.0 A'],
  ['slack', 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
  ['telegram', 'TelegramBot (like TwitterBot)'],
  ['x', 'Twitterbot/1.0'],
  ['discord', 'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)'],
  ['facebook', 'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)'],
  [
    'imessage',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0',
  ],
  [
    'linkedin',
    'LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)',
  ],
  ['skype', 'Mozilla/4.0 (compatible; ms-office; MSOffice 16)'],
  ['empty', ''],
  ['empty', '   '],
  ['curl', 'curl/8.5.0'],
  ['google', 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'],
  ['other', 'SomeUnknownBot/1.0'],
] as const
test.each(previews)('%s is recognized', (bot, agent) => {
  expect(findBot(agent)).toBe(bot)
})
