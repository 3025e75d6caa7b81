import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { LINK_PASSWORD_MAX, LINK_PASSWORD_MIN, LinkPassword } from '../../links/link-passwords.ts'
import { changeLink } from '../../links/properties.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import type { PageContext } from '../auth/guard.ts'
import { refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf } from '../ui/form.ts'
import { linkPath, replacesMain } from '../ui/link-parts.ts'

/** The password that visitors of a link enter: set, changed, removed, and never shown. */

const FIELD = 'link_password'
const REMOVE = { name: 'remove', value: '1', formnovalidate: true }

/** Sets the password in the form, or removes it. */
export async function saveLinkPassword(context: PageContext, { code }: Link): Promise<void> {
  const { deps, user, form } = context
  const password = form.has('remove') ? null : form.raw(FIELD)
  if (password !== null && !LinkPassword.safeParse(password).success) {
    throw refuseAt(FIELD, `Use ${LINK_PASSWORD_MIN} to ${LINK_PASSWORD_MAX} characters.`)
  }
  await changeLink(deps, user.account, code, { password })
}

/** `done`: the confirmation of the last change. */
export function linkPasswordCard(
  context: PageContext,
  { code }: Link,
  properties: LinkProperties,
  done: Html | false,
): Html {
  const { user, refusal } = context
  const isSet = properties.password !== null
  const action = `${linkPath(code)}/password`
  const error = errorOf(refusal, FIELD)
  return html`<section class="card" id="password">
    <h2>Password</h2>
    <p>${
      isSet
        ? 'Visitors must enter the password of this link, once in 12 hours.'
        : 'Visitors are not asked for a password.'
    }</p>
    ${parts.form(
      user,
      action,
      [
        // Else password managers would store it as that of the account.
        html`<input name="username" value="${code}" autocomplete="username" hidden>`,
        parts.field({
          name: FIELD,
          type: 'password',
          label: isSet ? 'New password' : 'Password for visitors',
          hint: `At least ${LINK_PASSWORD_MIN} characters. It protects the short link, not the page
            behind it: visitors can pass on the destination.`,
          error,
          required: true,
          autocomplete: 'new-password',
          extra: { autofocus: error !== undefined },
        }),
        html`<div class="row">
          ${parts.button(isSet ? 'Change the password' : 'Set the password', 'plain')}
          ${isSet && parts.button('Remove the password', 'plain', REMOVE)}${done}
        </div>`,
      ],
      replacesMain(action),
    )}
  </section>`
}
