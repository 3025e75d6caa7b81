import type { Command } from '@commander-js/extra-typings'
import type { LinkChange } from '../client/client.ts'
import { parseJson } from '../lib/json.ts'
import { print } from '../lib/log.ts'
import { CommandError } from './errors.ts'
import { readText } from './input.ts'
import { parseText } from './options.ts'
import { explained, keyHolder, REMOTE, requireOne, type Target, target } from './remote.ts'

/** `link`: the group of commands. */
export function addDestinationsCommand(link: Command): void {
  link
    .command('destinations')
    .summary('print the destinations by rule of your link, or set them from a file')
    .description(
      'Print the destinations by rule of your link as JSON, or set them from a file with such a ' +
        `list; an empty list removes them. ${REMOTE}`,
    )
    .argument('<LINK>', 'its code, alias, short URL or title', parseText)
    .argument('[FILE]', 'the list of destinations as JSON; - is standard input', parseText)
    .action(async (text, file) => {
      const list = file === undefined ? undefined : parseList(await readText(file))
      const service = await target()
      const link = await requireOne(service, text)
      const { destinations } = list ? await setDestinations(service, link.code, list) : link
      print(JSON.stringify(destinations, null, 2))
    })
}

const setDestinations = (service: Target, code: string, list: unknown[]) =>
  explained(
    service.url,
    keyHolder(service).patchLink(code, { destinations: list as LinkChange['destinations'] & {} }),
  )

/** The service validates the elements. An empty text is no list, so that nothing is removed. */
function parseList(text: string): unknown[] {
  const value = parseJson(text)
  if (value === undefined) throw new CommandError('the destinations must be JSON')
  if (Array.isArray(value)) return value
  throw new CommandError('the destinations must be a list, in brackets')
}
