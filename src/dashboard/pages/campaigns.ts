import { type Html, html } from '../../lib/html.ts'
import { CAMPAIGN_FIELDS, campaignOf } from '../../links/campaign.ts'
import { type CampaignTemplate, TEMPLATES_MAX } from '../../links/campaign-templates.ts'
import { authorOf, type PageContext, spendWrite } from '../auth/guard.ts'
import { CAMPAIGNS_PATH, campaignFragment, campaignInputs, readFields } from '../cards/campaign.ts'
import { deleteColumn, deleteNamed, nameField, requireName } from '../cards/named-rows.ts'
import { editor, signedInPages } from '../page-routes.ts'
import { htmlResponse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'

/** Templates for campaign parameters. */
export const campaignPages = signedInPages({
  'GET /app/campaigns': editor(templatesPage, {
    offers: [{ label: 'Campaigns', section: 'account', words: 'templates utm parameters' }],
  }),
  'POST /app/campaigns': editor(saveTemplate, templatesPage),
  'POST /app/campaigns/delete': editor(async (context) => {
    await deleteNamed(context, 'template', context.deps.data.campaignTemplates.delete)
    return `${CAMPAIGNS_PATH}?done=deleted`
  }),
  'POST /app/campaigns/fields': editor((context) => htmlResponse(campaignFragment(context))),
})

async function saveTemplate(context: PageContext): Promise<string> {
  spendWrite(context)
  const name = requireName(context)
  const values = readFields(context)
  if (Object.values(values).every((value) => value === '')) {
    throw refuseAt('utm_source', 'Fill in at least one field.')
  }
  const author = authorOf(context)
  if (!(await context.deps.data.campaignTemplates.save({ author, name, values }))) {
    throw refuseAt('name', `An account has at most ${TEMPLATES_MAX} templates. Delete one first.`)
  }
  return `${CAMPAIGNS_PATH}?done=saved`
}

const DONE = {
  saved: 'The template is saved. Choose it under Campaign when you create a link.',
  deleted: 'The template is deleted. Links that were created with it stay as they are.',
}

function templatesPage(context: PageContext): Response {
  const { deps, user, form } = context
  const templates = deps.data.campaignTemplates.list(user.account.id)
  const values = campaignOf((param) => form.text(param))
  return page(context, {
    title: 'Campaign templates',
    at: CAMPAIGNS_PATH,
    messages: DONE,
    main: html`
      ${parts.card('Templates', templates.length > 0 ? templateTable(context, templates) : EMPTY)}
      ${parts.card(
        'New template',
        parts.form(user, CAMPAIGNS_PATH, [
          nameField(context, 'template'),
          html`<div class="columns small">${campaignInputs(context, values)}</div>`,
          parts.button('Save template'),
        ]),
      )}`,
  })
}

const EMPTY = html`<p>A template keeps the source, medium and other parameters that you add to URLs
  again and again. Choose it under Campaign when you create links.</p>`

const templateTable = (context: PageContext, templates: readonly CampaignTemplate[]): Html =>
  parts.table('Your templates', templates, {
    Name: ({ name }) => name,
    Values: ({ values }) =>
      CAMPAIGN_FIELDS.filter(({ param }) => values[param] !== '')
        .map(({ param, label }) => `${label}: ${values[param]}`)
        .join(' · '),
    'Delete it': deleteColumn(context, `${CAMPAIGNS_PATH}/delete`, 'template'),
  })
