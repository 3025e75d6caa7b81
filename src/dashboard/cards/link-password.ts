import { type Html, html } from '../../lib/html.ts'
import { LINK_PASSWORD_MAX, LINK_PASSWORD_MIN, LinkPassword } from '../../links/link-passwords.ts'
import type { LinkProperties } from '../../links/property-table.ts'
import type { PageContext } from '../auth/guard.ts'
import { refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf } from '../ui/form.ts'

/** The password that visitors of a link enter: set, changed, removed, and never shown. */

const FIELD = 'link_password'
const REMOVE = 'remove_password'

/** Null removes it; undefined: it stays. Throws `FormRefusal`. */
export function typedPassword({ form }: PageContext): string | null | undefined {
  if (form.has(REMOVE)) return null
  const password = form.raw(FIELD)
  if (password === '') return undefined
  if (LinkPassword.safeParse(password).success) return password
  throw refuseAt(FIELD, `Use ${LINK_PASSWORD_MIN} to ${LINK_PASSWORD_MAX} characters.`)
}

export function passwordFields(
  { form, refusal }: PageContext,
  { password }: LinkProperties,
  focus: string | undefined,
): Html {
  const isSet = password !== null
  const error = errorOf(refusal, FIELD)
  const isLost = refusal !== undefined && error === undefined && form.raw(FIELD) !== ''
  return html`
    ${parts.field({
      name: FIELD,
      type: 'password',
      label: isSet ? 'New password' : 'Password for visitors',
      hint: `${isSet ? 'Visitors enter it once in 12 hours. ' : ''}At least ${LINK_PASSWORD_MIN}
        characters. It protects the short link, not the page behind it: visitors can pass on the
        destination.`,
      error,
      autocomplete: 'new-password',
      extra: { autofocus: focus === FIELD },
    })}
    ${isLost && html`<p class="error" data-without-script>Enter the password again.</p>`}
    ${
      isSet &&
      parts.checkbox({ name: REMOVE, label: 'Remove the password', isChecked: form.has(REMOVE) })
    }`
}
