import type { AliasPatch } from '../addresses/names.ts'
import type { PublicUrls } from '../addresses/urls.ts'
import type { PropertiesChange, PropertiesFields } from './property-table.ts'
import type { LinkFields } from './schema.ts'

/** What a request changes of a link beside its URL. */
export interface LinkChange extends PropertiesChange {
  aliases?: AliasPatch | undefined
}

/**
 * A request names all aliases that the link has afterwards, those of each domain apart. A host that
 * is no domain stands for `NO_DOMAIN`, which the writer refuses.
 */
export function changeOf(
  addresses: Pick<PublicUrls, 'addressOf' | 'idOf'>,
  { aliases, domain_aliases, display_alias, ...properties }: LinkFields,
): LinkChange {
  const { addressOf } = addresses
  const patch = {
    set: aliases?.map((path) => addressOf({ host: null, path })),
    setOnDomains: domain_aliases?.map(addressOf),
    display: display_alias && addressOf(display_alias),
  }
  const hasAliases = Object.values(patch).some((value) => value !== undefined)
  return {
    ...propertiesOf(addresses, properties),
    aliases: hasAliases ? patch : undefined,
  }
}

/** The change of properties alone. */
export const propertiesOf = (
  { idOf }: Pick<PublicUrls, 'idOf'>,
  { domain, ...change }: PropertiesFields,
): PropertiesChange => ({ ...change, domain: domain === undefined ? undefined : idOf(domain) })
