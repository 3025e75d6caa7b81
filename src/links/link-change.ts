import type { AliasPatch } from './aliases.ts'
import type { PropertiesChange } from './property-table.ts'
import type { LinkFields } from './schema.ts'

/** What a request changes of a link beside its URL. */
export interface LinkChange extends PropertiesChange {
  aliases?: AliasPatch | undefined
}

/** A request names all aliases that the link has afterwards. */
export function changeOf({ aliases, display_alias, ...change }: LinkFields): LinkChange {
  const hasAliases = aliases !== undefined || display_alias !== undefined
  return { ...change, aliases: hasAliases ? { set: aliases, display: display_alias } : undefined }
}
