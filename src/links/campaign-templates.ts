import type { AccountId } from '../accounts/store.ts'
import { type Authored, authoredWrite, subject } from '../db/subject.ts'
import { type Campaign, readCampaign, withCampaign } from './campaign.ts'

export const TEMPLATES_MAX = 50

/** Named values of campaign parameters. */
export interface CampaignTemplate {
  id: number
  name: string
  values: Campaign
}

/** Stored as the query of `withCampaign`. */
const encode = (values: Campaign): string => withCampaign('', values)

/** The templates of an account for campaign parameters. */
export const campaignTemplates = subject({
  forget: ['DELETE FROM campaign_templates WHERE account_id = ?1'],

  reads(db) {
    const list = db.prepare<{ id: number; name: string; query: string }, [AccountId]>(
      'SELECT id, name, query FROM campaign_templates WHERE account_id = ? ORDER BY name',
    )
    return {
      list: (accountId: AccountId): CampaignTemplate[] =>
        list
          .all(accountId)
          .map(({ query, ...named }) => ({ ...named, values: readCampaign(query) })),
    }
  },

  writes: {
    /** Replaces a template of the same name. False if the account has `TEMPLATES_MAX` others. */
    save: authoredWrite('editor', {
      prepare(db) {
        const countOthers = db.prepare<{ n: number }, [AccountId, string]>(
          'SELECT count(*) AS n FROM campaign_templates WHERE account_id = ? AND name <> ?',
        )
        const save = db.prepare<never, [AccountId, string, string, number]>(
          `INSERT INTO campaign_templates (account_id, name, query, created_at)
           VALUES (?, ?, ?, ?) ON CONFLICT (account_id, name) DO UPDATE SET query = excluded.query`,
        )
        return ({ author, name, values }: Authored & Omit<CampaignTemplate, 'id'>): boolean => {
          const { accountId, now } = author
          if ((countOthers.get(accountId, name)?.n ?? 0) >= TEMPLATES_MAX) return false
          save.run(accountId, name, encode(values), now)
          return true
        }
      },
    }),

    delete: authoredWrite('editor', {
      prepare(db) {
        const remove = db.prepare<never, [number, AccountId]>(
          'DELETE FROM campaign_templates WHERE id = ? AND account_id = ?',
        )
        return ({ author, id }: Authored & { id: number }): void =>
          void remove.run(id, author.accountId)
      },
    }),
  },
})
