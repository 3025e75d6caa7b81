import type { Command } from '@commander-js/extra-typings'
import { type Administration, operatorOf, printing } from './administration.ts'
import { CommandError } from './errors.ts'
import { type Flag, JSON_LINES, JSON_OBJECT, parseText } from './options.ts'

export function addWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('receivers of events of all accounts')
  webhook
    .command('list')
    .description('list the webhooks of all accounts')
    .option(...JSON_LINES)
    .action((options) => run('listWebhooks', options))
  webhook
    .command('disable')
    .description('send nothing to a webhook until its account enables it')
    .argument('<ID>', 'its number in the list', parseText)
    .option(...JSON_OBJECT)
    .action((id, options) => run('disableWebhook', { id, ...options }))
}

/** What the commands run. Each function returns what is printed. */
export const webhookCommands = { listWebhooks, disableWebhook }

const run = printing(webhookCommands)

function listWebhooks({ data }: Administration, { json }: { json?: Flag }): string {
  const lines = data.webhooks.listAll().map(({ id, accountId, url, enabled, ...webhook }) => {
    const account = data.accounts.findById(accountId)?.name ?? null
    const state = enabled ? (webhook.failingSince === null ? 'active' : 'failing') : 'disabled'
    const queued = data.webhooks.countQueued(id)
    return json
      ? JSON.stringify({ id, account, url, state, reason: webhook.disabledReason, queued })
      : [id, account, url, state, `${queued} waiting`].join('  ')
  })
  return lines.join('\n') || (json ? '' : 'No webhooks.')
}

async function disableWebhook(
  deps: Administration,
  { id: text, json }: { id: string; json?: Flag },
): Promise<string> {
  await deps.writer.catchUp()
  const id = Number(text)
  if (!deps.data.webhooks.listAll().some((one) => one.id === id)) {
    throw new CommandError(`There is no webhook ${text}: see "hopcode webhook list".`)
  }
  await deps.data.webhooks.disable({ id, author: operatorOf(deps) })
  return json ? JSON.stringify({ id, enabled: false }) : `Webhook ${id} is disabled.`
}
