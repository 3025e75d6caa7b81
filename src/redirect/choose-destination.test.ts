import { expect, test } from 'bun:test'
import { DestinationChooser, visitorOf } from './choose-destination.ts'

const MOBILE = { 'sec-ch-ua-mobile': '?1' }
const NOT_MOBILE = { 'sec-ch-ua-mobile': '?0' }

const visitorWith = (headers: Record<string, string>) =>
  visitorOf({ get: (name) => headers[name] ?? null, query: '' }, 0)

const mac = (rest: string) =>
  `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) ${rest}`
const chrome = (system: string, rest = 'Safari/537.36') =>
  `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 ${rest}`

/** User-Agent, system and device. */
const AGENTS: [string, string | undefined, string | undefined][] = [
  // iPhone and iPad that ask for desktop pages.
  [mac('CriOS/87 Version/11.1.1 Safari/605.1.15'), 'ios', 'tablet'],
  [mac('FxiOS/126.0 Safari/605.1.15'), 'ios', 'tablet'],
  [mac('Version/17.0 EdgiOS/125.0 Safari/605.1.15'), 'ios', 'tablet'],
  [mac('OPiOS/16.0.15 Version/17.0 Safari/605.1.15'), 'ios', 'tablet'],
  [mac('Version/17.4 Safari/605.1.15 OPT/4.7.0'), 'ios', 'tablet'],
  [mac('GSA/319.0 Safari/604.1'), 'ios', 'tablet'],
  [mac('Version/17.4 DuckDuckGo/7 Safari/605.1.15'), 'ios', 'tablet'],
  [mac('Version/17.4 Mobile/15E148 Safari/604.1'), 'ios', 'tablet'],
  [mac('Mobile/15E148 [FBAN/FBIOS;FBAV/450.0]'), 'ios', 'tablet'],
  // Their own names, and what is on a Mac.
  [mac('Version/17.5 Safari/605.1.15'), 'macos', 'desktop'],
  [mac('Version/17.5 Safari/605.1.15 Ddg/17.5'), 'macos', 'desktop'],
  [mac('Chrome/126.0.0.0 Safari/537.36 OPR/112.0'), 'macos', 'desktop'],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) CriOS/126 Mobile/1', 'ios', 'phone'],
  ['Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) CriOS/126.0 Mobile/15E148', 'ios', 'tablet'],
  ['MobileSafari/8618.1 CFNetwork/1494.0.7 Darwin/23.4.0', 'ios', 'phone'],
  // Televisions, consoles and glasses.
  [chrome('Linux; Android 12; BRAVIA 4K VH22'), 'android', undefined],
  [chrome('Linux; Android 12; Chromecast', 'Safari/537.36 CrKey/1.56'), 'android', undefined],
  [chrome('X11; Linux armv7l', 'Safari/537.36 CrKey/1.54'), 'linux', undefined],
  [chrome('Linux; Android 11; SHIELD Android TV'), 'android', undefined],
  [chrome('Linux; Android 9; AFTKA'), 'android', undefined],
  [chrome('Linux; Android 10; MiTV4-ANSM0'), 'android', undefined],
  [chrome('Linux; GoogleTV 3.2'), 'linux', undefined],
  ['Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) AppleWebKit/537.36', undefined, undefined],
  ['Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36', undefined, undefined],
  ['Mozilla/5.0 (webOS.TV-2023; Linux/SmartTV) Chrome/94', undefined, undefined],
  ['HbbTV/1.5.1 (+DRM; Samsung; SmartTV2021) Linux', 'linux', undefined],
  [chrome('Windows NT 10.0; Win64; x64; Xbox; Xbox One', 'Edge/44.18363'), 'windows', undefined],
  ['Mozilla/5.0 (PlayStation; PlayStation 5/6.00) Safari/605.1.15', undefined, undefined],
  ['Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet)', undefined, undefined],
  [chrome('X11; Linux x86_64; Quest 3', 'OculusBrowser/33 VR Safari/537.36'), 'linux', undefined],
  [chrome('Linux; Android 12; Quest 2', 'Mobile VR Safari/537.36'), 'android', undefined],
  [chrome('Linux; Android 6.0.1; SHIELD Tablet K1'), 'android', 'tablet'],
  // Opera Mini, and programs on Android.
  ['Opera/9.80 (Android; Opera Mini/79.0.2254/191.283; U; en) Presto/2.12', 'android', 'phone'],
  ['Opera/9.80 (J2ME/MIDP; Opera Mini/7.1.32052/29.3709; U; en)', undefined, 'phone'],
  ['Opera/9.80 (iPad; Opera Mini/7.1.32694/27.1407; U; en)', 'ios', 'tablet'],
  ['Opera/9.80 (Android 3.2.1; Linux; Opera Tablet/ADR-1111101157)', 'android', 'tablet'],
  ['Dalvik/2.1.0 (Linux; U; Android 13; SM-S901B Build/TP1A.220624.014)', 'android', undefined],
  [chrome('Linux; Android 13; SM-X900'), 'android', 'tablet'],
  [chrome('Linux; Android 10; K', 'Mobile Safari/537.36'), 'android', 'phone'],
  ['Mozilla/5.0 (Macintosh; U; Intel Mac OS X 10_6_3; Silk/1.0.22.79)', 'android', 'tablet'],
  // Systems that no condition names.
  ['Mozilla/5.0 (X11; FreeBSD amd64; rv:126.0) Firefox/126.0', undefined, 'desktop'],
  ['Mozilla/5.0 (X11; OpenBSD amd64; rv:126.0) Firefox/126.0', undefined, 'desktop'],
  ['Mozilla/5.0 (X11; NetBSD amd64; rv:126.0) Firefox/126.0', undefined, 'desktop'],
  ['Mozilla/5.0 (X11; SunOS i86pc; rv:52.0) Firefox/52.0', undefined, 'desktop'],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Firefox/126.0', 'linux', 'desktop'],
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:126.0) Firefox/126.0', 'windows', 'desktop'],
  [chrome('X11; CrOS x86_64 14541.0.0'), 'chromeos', 'desktop'],
  ['curl/8.5.0', undefined, undefined],
]

test.each(AGENTS)('the system and the device of %s', (agent, os, device) => {
  const visitor = visitorWith({ 'user-agent': agent })
  expect([visitor.os, visitor.device]).toEqual([os, device] as never)
})

test.each([
  ['a television', chrome('Linux; Android 12; BRAVIA 4K VH22'), 'Android', NOT_MOBILE, undefined],
  [
    'a television with an odd hint',
    chrome('Linux; Android 9; AFTKA'),
    'Android',
    MOBILE,
    undefined,
  ],
  ['glasses', chrome('X11; Linux x86_64; Quest 3', 'VR Safari'), 'Android', NOT_MOBILE, undefined],
  ['a tablet', chrome('X11; Linux x86_64'), 'Android', NOT_MOBILE, 'tablet'],
  ['a phone', chrome('Linux; Android 10; K', 'Mobile Safari'), 'Android', MOBILE, 'phone'],
  ['a notebook', chrome('X11; CrOS x86_64'), 'Chrome OS', NOT_MOBILE, 'desktop'],
])('the device of %s that sends hints', (_, agent, platform, mobile, device) => {
  const hints = { 'sec-ch-ua-platform': `"${platform}"`, ...mobile }
  expect(visitorWith({ 'user-agent': agent, ...hints }).device).toBe(device as never)
})

test('of a long Accept-Language, whole entries up to 1,024 characters are read', () => {
  const languages = (header: string) =>
    visitorWith({ 'accept-language': header }).languages.map((subtags) => subtags.join('-'))
  const long = `x${';'.repeat(1021)}`
  expect(languages(`${long},d`)).toEqual(['x', 'd'])
  expect(languages(`${long},de`)).toEqual(['x'])
  expect(languages(`de,${';'.repeat(7000)}`)).toEqual(['de'])
})

test('the country is looked up once for all destinations of a request', () => {
  let lookups = 0
  const countries = {
    findByClient: () => {
      lookups++
      return 'FR'
    },
  }
  const chooser = new DestinationChooser({ clock: () => 0, countries, countryHeader: undefined })
  const destinations = ['DE', 'AT', 'FR'].map((country) => ({
    when: { country: [country] },
    location: `https://${country}.example/`,
  }))
  const client = { keyHigh: 0, keyLow: 0, isForwarded: false }
  const found = chooser.find({ destinations }, { get: () => null, query: '' }, client)
  expect([found, lookups]).toEqual(['https://FR.example/', 1])
})
