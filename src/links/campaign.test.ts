import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  CAMPAIGN_FIELDS,
  type Campaign,
  campaignOf,
  readCampaign,
  withCampaign,
} from './campaign.ts'

test.each<[url: string, change: Partial<Campaign>, result: string]>([
  ['https://a.example', { utm_source: 'x' }, 'https://a.example?utm_source=x'],
  ['a.example/?q=1', { utm_source: 'x y' }, 'a.example/?q=1&utm_source=x%20y'],
  [
    'https://a.example/?q=%7E+1&&b#top',
    { utm_medium: 'ä&=' },
    'https://a.example/?q=%7E+1&&b&utm_medium=%C3%A4%26%3D#top',
  ],
  [
    'https://a.example/?utm_source=old&z=1&utm_source=two',
    { utm_source: 'new' },
    'https://a.example/?utm_source=new&z=1',
  ],
  [
    'https://a.example/?utm_source=old#/app?utm_source=spa',
    { utm_source: '' },
    'https://a.example/#/app?utm_source=spa',
  ],
  [
    'https://a.example/?utm%5Fsource=old',
    { utm_source: 'new' },
    'https://a.example/?utm_source=new',
  ],
  ['https://a.example/?utm_source', { utm_source: 'new' }, 'https://a.example/?utm_source=new'],
  [
    'https://a.example/?UTM_SOURCE=x',
    { utm_source: 'y' },
    'https://a.example/?UTM_SOURCE=x&utm_source=y',
  ],
  ['https://a.example/?a=%ZZ', { utm_term: '' }, 'https://a.example/?a=%ZZ'],
  ['https://a.example/?', {}, 'https://a.example/?'],
  ['https://a.example/?#top', { utm_term: '' }, 'https://a.example/?#top'],
])('%s with %j is %s', (url, change, result) => {
  expect(withCampaign(url, change)).toBe(result)
})

test('the parameters of a URL are read as forms write them', () => {
  const url = 'https://a.example/?utm_source=a+b&utm_medium=%C3%A4&utm_term&utm_content=%ZZ'
  expect(readCampaign(url)).toEqual({
    utm_source: 'a b',
    utm_medium: 'ä',
    utm_campaign: '',
    utm_term: '',
    utm_content: '%ZZ',
  })
})

test('what is written is read again, and other parameters stay', () => {
  const value = fc.string({ unit: 'grapheme', maxLength: 20 })
  const campaign = fc.tuple(...CAMPAIGN_FIELDS.map(() => value))
  const others = fc.webUrl({ withQueryParameters: true, withFragments: true })
  fc.assert(
    fc.property(others, campaign, (url, values) => {
      const wanted = campaignOf(
        (param) => values[CAMPAIGN_FIELDS.findIndex((field) => field.param === param)] ?? '',
      )
      const written = withCampaign(url, wanted)
      expect(readCampaign(written)).toEqual(wanted)
      const removed = withCampaign(
        written,
        campaignOf(() => ''),
      )
      expect(removed.replace('?#', '#').replace(/\?$/, '')).toBe(
        url.replace('?#', '#').replace(/\?$/, ''),
      )
    }),
  )
})
