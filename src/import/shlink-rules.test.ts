import { expect, test } from 'bun:test'
import { imported } from '../../test/support/imported.ts'

const URL = 'https://example.com/'

type Condition = [type: string, key: string | null, value: string]

const rule = (priority: number, ...conditions: Condition[]) => ({
  longUrl: `${URL}rule${priority}`,
  priority,
  conditions: conditions.map(([type, matchKey, matchValue]) => ({ type, matchKey, matchValue })),
})

test('rules become destinations in the order of their priority, and the others are named', async () => {
  const link = {
    shortCode: 'spring-sale',
    shortUrl: 'https://s.test/spring-sale',
    longUrl: URL,
    dateCreated: '2016-05-02T17:49:53+02:00',
    forwardQuery: false,
    hasRedirectRules: true,
    redirectRules: [
      rule(3, ['query-param', 'v', '2'], ['any-value-query-param', 'w', '']),
      rule(1, ['device', null, 'mobile'], ['language', null, 'pt-br']),
      rule(2, ['geolocation-country-code', null, 'DE'], ['device', null, 'desktop']),
      rule(4, ['valueless-query-param', 'x', ''], ['ip-address', null, '192.0.2.*']),
      rule(5, ['after-date', null, '2026-03-01T12:00:00+01:00']),
      rule(6, ['device', null, 'android'], ['device', null, 'mobile']),
      rule(7, ['constructor', null, 'x']),
      rule(8, ['device', null, 'toString']),
    ],
  }
  const { format, lines, summary } = await imported([`${JSON.stringify(link)}\n`])
  expect(format).toBe('shlink')
  expect(lines).toEqual([
    {
      url: URL,
      created_at: '2016-05-02T15:49:53.000Z',
      aliases: ['spring-sale'],
      destinations: [
        { when: { os: ['android', 'ios'], language: ['pt-br'] }, url: `${URL}rule1` },
        {
          when: { os: ['windows', 'macos', 'linux', 'chromeos'], country: ['DE'] },
          url: `${URL}rule2`,
        },
        { when: { query: { v: '2', w: true } }, url: `${URL}rule3` },
        { when: { from: '2026-03-01T12:00:00+01:00' }, url: `${URL}rule5` },
      ],
    },
  ])
  expect(summary.lost).toMatchObject({
    'redirect rule (ip-address)': 1,
    'redirect rule (two of device)': 1,
    'redirect rule (unknown)': 1,
  })
})
