import type { z } from 'zod'
import { hasAccess } from '../accounts/keys.ts'
import type { KeyHolder } from '../accounts/store.ts'
import type { DomainReads } from '../addresses/domains.ts'
import { AliasPath } from '../addresses/schema.ts'
import { AppError } from '../errors.ts'
import { toCode } from '../lib/code.ts'
import { type NewLinkFields, shorten } from '../links/create.ts'
import type { Kit } from '../links/kit.ts'
import type { ParsedUrl } from '../links/link.ts'
import { getProperties } from '../links/properties.ts'
import { NO_PROPERTIES, propertiesView, TITLE_MAX } from '../links/property-table.ts'
import type { PropertiesView } from '../links/schema.ts'

/** What the APIs of other shorteners have in common: a link has one word, which is its path. */

export interface NewLinkDeps extends Kit {
  data: Kit['data'] & { domains: Pick<DomainReads, 'defaultOf'> }
}

/** The refusal of a parameter, which its `fields` name. */
export const invalidField = (name: string, message = `Invalid ${name}`): AppError =>
  new AppError('invalid_value', message, { fields: { invalidElements: [name] } })

/** Throws `invalidField`. */
export function parseField<Model extends z.ZodType>(
  model: Model,
  value: unknown,
  name: string,
): z.output<Model> {
  const { success, data, error } = model.safeParse(value)
  if (success) return data
  throw invalidField(name, error.issues[0]?.message)
}

/** A title of another shortener, which may be longer and have several lines. */
export const titleOf = (text: string): string =>
  [...text.toWellFormed().replace(/[\s\p{Cc}]+/gu, ' ')].slice(0, TITLE_MAX).join('')

/** `word`: empty for a generated code. `name`: the parameter with the word. */
interface Wanted {
  url: ParsedUrl
  word: string
  name: string
  fields: NewLinkFields
  /** Whether a link that the account has for the URL will do. */
  reuse: boolean
}

/** Creates a link, or finds one. Throws as `shorten`. */
export async function createOrFind(
  deps: NewLinkDeps,
  account: KeyHolder,
  { url, word, name, fields, reuse }: Wanted,
): Promise<{ isFound: boolean; link: PropertiesView }> {
  const domainId = fields.domain ?? deps.data.domains.defaultOf(account.id)
  const alias = () => ({ add: [{ domainId, path: parseField(AliasPath, word, name) }] })
  const named = toCode(word) ? { code: word } : word ? { aliases: alias() } : {}
  const all = { ...fields, ...named }
  const { code, reused } = await shorten(deps, account, url, all, { reuse })
  const link = getProperties(deps, account, code)
  // The properties of an older link are not for a key that can only create.
  const isHidden = reused && !hasAccess(account, 'read')
  const unset = isHidden && {
    ...propertiesView(deps.addresses, NO_PROPERTIES),
    display_url: link.short_url,
  }
  return { isFound: reused, link: { ...link, ...unset } }
}

/** The word that people see. */
export const wordOf = ({ display_url: url }: Pick<PropertiesView, 'display_url'>): string =>
  decodeURIComponent(new URL(url).pathname.slice(1))

/** Whether the word is that of another link. */
export const isTaken = ({ code }: AppError): boolean =>
  code === 'code_in_use' || code === 'path_taken' || code === 'path_differs_in_case'
