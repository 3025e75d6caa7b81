import { expect, test } from 'bun:test'
import type { Code } from '../lib/code.ts'
import type { Link } from '../links/link.ts'
import type { ListQuery } from '../lists/lists.ts'
import { CAMPAIGN_LINKS_MAX, campaignReport } from './campaigns.ts'
import type { Visits } from './visits.ts'

const QUERY = {
  accountId: 1,
  range: { bounds: [240, 264, 480], previous: [0, 24, 240] },
  days: { from: 10, to: 20 },
  refs: ['qr'],
}

/** The newest link has the highest id. `hits`: by link, in the range and before. */
function account(urls: string[], hits: (id: number) => readonly [number, number]) {
  const links = urls.map((url, i) => ({ id: i + 1, code: `CODE${i + 1}` as Code, url }) as Link)
  const asked: ListQuery[] = []
  const deps = {
    pages: {
      findPage: async (query: ListQuery) => {
        asked.push(query)
        const order = query.byHits
          ? links.toSorted((a, b) => hits(b.id)[0] - hits(a.id)[0])
          : links.toReversed()
        const { offset, limit } = query
        return { total: links.length, links: order.slice(offset, offset + limit) }
      },
    },
    top: {
      sumsOf: async (ids: readonly number[], from: number) => {
        const at = from === 240 ? 0 : 1
        return ids.map((id) => ({ id, count: hits(id)[at] ?? 0 })).filter(({ count }) => count > 0)
      },
    },
    visitDetails: {
      of: async () => ({ scans: { byDay: [], byLink: new Map([[1, 4]]) } }) as never as Visits,
    },
  }
  return { asked, read: () => campaignReport(deps, QUERY) }
}

test('links are added up by campaign, then by source and medium, the most hits first', async () => {
  const urls = [
    'https://a.example/?utm_campaign=spring&utm_source=flyer&utm_medium=print',
    'https://b.example/?utm_campaign=spring&utm_source=flyer&utm_medium=print&x=1',
    'https://c.example/?utm_campaign=spring&utm_source=mail',
    'https://d.example/?utm_source=mail',
    'https://e.example/my_utm_page',
    'https://f.example/?utm_campaign=over',
    'https://g.example/?utm_campaign=never',
  ]
  const hits = [
    [5, 1],
    [2, 0],
    [9, 3],
    [30, 0],
    [50, 50],
    [0, 7],
    [0, 0],
  ] as const
  const { campaigns } = await account(urls, (id) => hits[id - 1] ?? [0, 0]).read()
  const rows = campaigns.map(({ all, sources }) => [
    [all.campaign, all.hits, all.before, all.scans, all.codes.length],
    ...sources.map(({ source, medium, hits }) => [source, medium, hits]),
  ])
  expect(rows).toEqual([
    [
      ['', 30, 0, 0, 1],
      ['mail', '', 30],
    ],
    [
      ['spring', 16, 4, 4, 3],
      ['mail', '', 9],
      ['flyer', 'print', 7],
    ],
    [
      ['over', 0, 7, 0, 1],
      ['', '', 0],
    ],
  ])
})

test('of more links than a report has, it has the newest and those with the most hits', async () => {
  const many = 3 * CAMPAIGN_LINKS_MAX
  const urls = Array.from({ length: many }, (_, i) => `https://a.example/?utm_campaign=c${i + 1}`)
  const { read, asked } = account(urls, (id) => [id < 400 ? 1000 - id : 1, 0])
  const { campaigns, total } = await read()
  expect(total).toBe(many)
  expect(campaigns).toHaveLength(CAMPAIGN_LINKS_MAX)
  const names = new Set(campaigns.map(({ all }) => all.campaign))
  expect([names.has('c1'), names.has(`c${many}`), names.has('c500')]).toEqual([true, true, false])
  expect(asked.map(({ limit }) => limit)).toEqual([250, 250])
})

test('all links are read as long as a report has room for them', async () => {
  const urls = Array.from({ length: 400 }, (_, i) => `https://a.example/?utm_campaign=c${i + 1}`)
  const { campaigns } = await account(urls, () => [1, 0]).read()
  expect(campaigns).toHaveLength(400)
})
