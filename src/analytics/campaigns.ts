import type { AccountId } from '../accounts/store.ts'
import type { HitRange } from '../hits/range.ts'
import { readCampaign } from '../links/campaign.ts'
import type { LinkPages } from '../lists/lists.ts'
import type { TopLinks } from './top.ts'
import type { DayRange, VisitDetails } from './visits.ts'

/** Hits by the campaign parameters that links have in their destinations. */

/** Links that are read at once: about 2 ms of the reader thread. */
const PART = 250
/** Links of a report. Of more, it has the newest, and those with the most hits of all time. */
export const CAMPAIGN_LINKS_MAX = 2 * PART

/** Some links with equal parameters, and their hits and scans. */
export interface CampaignRow {
  /** Empty without the parameter. */
  campaign: string
  source: string
  medium: string
  codes: string[]
  hits: number
  /** Hits of the period before. */
  before: number
  scans: number
}

export interface CampaignReport {
  /** The most hits first, without those that have none in both periods. */
  campaigns: { all: CampaignRow; sources: CampaignRow[] }[]
  /** Links that may have parameters. */
  total: number
}

interface CampaignQuery {
  accountId: AccountId
  range: Pick<HitRange, 'bounds' | 'previous'>
  days: DayRange
  /** Words of the account's codes, whose visits are scans. */
  refs: readonly string[]
}

/**
 * The work is that of a search, and that of a report on `CAMPAIGN_LINKS_MAX` links. Throws
 * `search_timeout` or `visits_timeout`.
 */
export async function campaignReport(
  deps: {
    pages: Pick<LinkPages, 'findPage'>
    top: Pick<TopLinks, 'sumsOf'>
    visitDetails: Pick<VisitDetails, 'of'>
  },
  { accountId, range, days, refs }: CampaignQuery,
): Promise<CampaignReport> {
  const query = { accountId, search: 'utm_', limit: PART, offset: 0 }
  const { total, links: newest } = await deps.pages.findPage(query)
  const isWhole = total <= CAMPAIGN_LINKS_MAX
  const others = await deps.pages.findPage({
    ...query,
    offset: isWhole ? PART : 0,
    byHits: !isWhole,
  })
  const links = [...new Map([...newest, ...others.links].map((link) => [link.id, link])).values()]
  const linkIds = links.map(({ id }) => id)
  const sums = async ([from = 0, ...hours]: readonly number[] = []) => {
    const found = await deps.top.sumsOf(linkIds, from, hours.at(-1) ?? from)
    return new Map(found.map(({ id, count }) => [id, count]))
  }
  const [hits, before] = [await sums(range.bounds), await sums(range.previous)]
  const { scans } = await deps.visitDetails.of({ linkIds }, days, accountId, refs)
  const rows = links.map(({ id, code, url }): CampaignRow => {
    const {
      utm_campaign: campaign,
      utm_source: source,
      utm_medium: medium,
    } = readCampaign(url ?? '')
    const [now, earlier] = [hits.get(id) ?? 0, before.get(id) ?? 0]
    const counts = { hits: now, before: earlier, scans: scans.byLink.get(id) ?? 0 }
    return { campaign, source, medium, codes: [code], ...counts }
  })
  // A search also finds the text elsewhere in a URL.
  const shown = rows.filter(
    ({ campaign, source, medium, hits, before }) => (campaign || source || medium) && hits + before,
  )
  const campaigns = added(shown, ({ campaign }) => campaign).map((all) => {
    const own = shown.filter(({ campaign }) => campaign === all.campaign)
    return { all, sources: added(own, ({ source, medium }) => `${source}\n${medium}`) }
  })
  return { campaigns, total }
}

function added(rows: readonly CampaignRow[], keyOf: (row: CampaignRow) => string): CampaignRow[] {
  const groups = [...Map.groupBy(rows, keyOf).values()]
  const sumOf = (a: CampaignRow, b: CampaignRow): CampaignRow => ({
    ...a,
    codes: [...a.codes, ...b.codes],
    hits: a.hits + b.hits,
    before: a.before + b.before,
    scans: a.scans + b.scans,
  })
  return groups.map((same) => same.reduce(sumOf)).sort((a, b) => b.hits - a.hits)
}
