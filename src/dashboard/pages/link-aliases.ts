import { parseWith } from '../../http/body.ts'
import { type Html, html, visible } from '../../lib/html.ts'
import { ALIASES_MAX, decodePath } from '../../links/aliases.ts'
import type { Link } from '../../links/link.ts'
import { changeLink } from '../../links/properties.ts'
import { AliasPath } from '../../links/schema.ts'
import type { PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { linkPath } from '../ui/link-parts.ts'

/** Adds the alias in `add`, or removes the one in `remove`. Throws the refusals of the API. */
export async function saveAliases(context: PageContext, { code }: Link): Promise<void> {
  const { deps, user, form } = context
  const added = form.text('add')
  const aliases = { add: added === '' ? [] : [pathOf(deps, added)], remove: [form.text('remove')] }
  await changeLink(deps, user.account, code, { aliases })
}

/** A path, or the whole short URL that is printed somewhere. */
function pathOf({ baseUrl }: DashboardDeps, typed: string): string {
  const path = typed.startsWith(`${baseUrl}/`) ? typed.slice(baseUrl.length) : typed
  const decoded = path === typed ? path : (decodePath(path) ?? path)
  return parseWith(AliasPath, decoded.replace(/^\//, ''))
}

/** Absent for an account that cannot have aliases. */
export function aliasCard(context: PageContext, link: Link): Html | false {
  const { deps, user } = context
  const { aliases, aliasRules, baseUrl } = deps
  const paths = aliases.ofLink(link.id)
  const mayAdd = aliasRules.mayAdd(user.account.id)
  if (paths.length === 0 && !mayAdd) return false
  const action = `${linkPath(link.code)}/aliases`
  return parts.card(
    'Aliases',
    html`<p class="hint">Further addresses that lead here, for example printed ones of another
        service. Letter case matters.</p>
      ${paths.map(
        (path) => html`<div class="row">
          <code>${baseUrl}/${visible(path)}</code>
          ${parts.buttonForm(user, action, 'Remove', {
            values: { remove: path },
            title: `Remove ${path}`,
          })}
        </div>`,
      )}
      ${
        mayAdd &&
        paths.length < ALIASES_MAX &&
        parts.form(user, action, [
          parts.field({
            ...typed(context, 'add'),
            label: 'New alias',
            autocomplete: 'off',
            extra: { maxlength: 1000, placeholder: 'spring-sale', spellcheck: 'false' },
          }),
          parts.button('Add', 'plain'),
        ])
      }`,
  )
}
