import { type NamedRow, namedRows } from '../db/named-rows.ts'
import { subject } from '../db/subject.ts'
import { type Campaign, readCampaign, withCampaign } from './campaign.ts'

export const TEMPLATES_MAX = 50

/** Named values of campaign parameters. */
export type CampaignTemplate = NamedRow<'values', Campaign>

const rows = namedRows({
  table: 'campaign_templates',
  column: 'query',
  field: 'values',
  max: TEMPLATES_MAX,
  encode: (values: Campaign) => withCampaign('', values),
  decode: readCampaign,
})

/** The templates of an account for campaign parameters. */
export const campaignTemplates = subject({
  forget: ['DELETE FROM campaign_templates WHERE account_id = ?1'],
  reads: (db) => ({ list: rows.lister(db) }),
  writes: { save: rows.save, delete: rows.delete },
})
