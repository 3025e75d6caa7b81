import { attributes, type Html, html } from '../../lib/html.ts'
import {
  CAMPAIGN_FIELDS,
  CAMPAIGN_LENGTH_MAX,
  type Campaign,
  campaignOf,
  readCampaign,
  withCampaign,
} from '../../links/campaign.ts'
import type { PageContext } from '../auth/guard.ts'
import { FormRefusal } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf } from '../ui/form.ts'

/** Fields for the campaign parameters of a URL, beside the field of the URL. */

export const CAMPAIGNS_PATH = '/app/campaigns'

/** What the fields showed when they were sent: only what was changed is written into the URL. */
const SHOWN = 'campaign_shown'
const TEMPLATE = 'campaign_template'

/** The changed fields, and those of the chosen template that were not changed. */
function changesIn({ deps, user, form }: PageContext): Partial<Campaign> {
  const shown = readCampaign(form.text(SHOWN))
  const changed = CAMPAIGN_FIELDS.filter(({ param }) => form.text(param) !== shown[param])
  const id = Number(form.text(TEMPLATE))
  const templates = id ? deps.data.campaignTemplates.list(user.account.id) : []
  const template = templates.find((one) => one.id === id)
  const ofTemplate = Object.entries(template?.values ?? {}).filter(([, value]) => value !== '')
  const typed = changed.map(({ param }) => [param, form.text(param)])
  return Object.fromEntries([...ofTemplate, ...typed])
}

/** The values of the fields. Throws `FormRefusal` for one that is too long. */
export function readFields({ form }: Pick<PageContext, 'form'>): Campaign {
  const long = CAMPAIGN_FIELDS.filter(({ param }) => form.text(param).length > CAMPAIGN_LENGTH_MAX)
  const problem = `Use at most ${CAMPAIGN_LENGTH_MAX} characters.`
  if (long.length > 0) {
    throw new FormRefusal(Object.fromEntries(long.map(({ param }) => [param, problem])))
  }
  return campaignOf((param) => form.text(param))
}

/** A function that writes what the form says about the campaign into a URL. */
export function campaignWriter(context: PageContext): (url: string) => string {
  readFields(context)
  const change = changesIn(context)
  return (url) => (url === '' ? '' : withCampaign(url, change))
}

/**
 * The fields again, for a URL or a template that was just chosen. Sent as a form: a log of requests
 * must not have the URL.
 */
export function campaignFragment(context: PageContext): Html {
  return fieldsOf(context, context.form.text('url'), changesIn(context))
}

/** `url`: whose parameters the fields show. Absent: they change several URLs. */
export function campaignFields(context: PageContext, url?: string): Html {
  const { form, refusal } = context
  const change = refusal !== undefined && form.has(SHOWN) ? changesIn(context) : {}
  const isOpen = hasValues(change) || Object.values(readCampaign(url ?? '')).some(Boolean)
  return html`<details ${attributes({ id: 'campaign', class: 'more-fields', open: isOpen })}>
    <summary>Campaign</summary>
    ${fieldsOf(context, url, change)}
    ${parts.offer(
      context.user,
      CAMPAIGNS_PATH,
      html`<p class="hint"><a href="${CAMPAIGNS_PATH}">Campaign templates</a></p>`,
    )}
  </details>`
}

const hasValues = (change: Partial<Campaign>): boolean => Object.keys(change).length > 0

function fieldsOf(context: PageContext, url: string | undefined, change: Partial<Campaign>): Html {
  const shown = readCampaign(url ?? '')
  const isOneUrl = url !== undefined
  const all = attributes({ id: 'campaign-fields', ...(isOneUrl && FILLED) })
  return html`<div ${all}>
    ${parts.hiddenFields({ [SHOWN]: withCampaign('', shown) })}
    <div class="columns small">
      ${templateChoice(context)}
      ${campaignInputs(context, { ...shown, ...change })}
    </div>
    ${
      isOneUrl &&
      html`<p class="hint" id="campaign-url" data-without-script>${
        hasValues(change) && ['Becomes ', html`<b>${withCampaign(url, change)}</b>`]
      }</p>`
    }
  </div>`
}

/** A chosen template fills the fields. The script keeps them and the field of the URL equal. */
const FILLED = {
  'hx-post': `${CAMPAIGNS_PATH}/fields`,
  'hx-trigger': 'change from:#field-campaign_template',
  'hx-swap': 'outerHTML',
  'hx-target': 'this',
  'hx-sync': 'closest form:abort',
}

export const campaignInputs = (
  { refusal }: Pick<PageContext, 'refusal'>,
  values: Campaign,
): Html[] =>
  CAMPAIGN_FIELDS.map(({ param, label, example }) =>
    parts.field({
      name: param,
      label: `${label} (${param})`,
      value: values[param],
      error: errorOf(refusal, param),
      extra: {
        maxlength: CAMPAIGN_LENGTH_MAX,
        placeholder: example,
        spellcheck: 'false',
      },
    }),
  )

/** Absent without a template. */
function templateChoice({ deps, user }: PageContext): Html | false {
  const templates = deps.data.campaignTemplates.list(user.account.id)
  if (templates.length === 0) return false
  const choices = templates.map(({ id, name }) => ({ value: String(id), label: name }))
  return parts.select({
    name: TEMPLATE,
    label: 'Template',
    value: '',
    choices: [{ value: '', label: 'None' }, ...choices],
  })
}
