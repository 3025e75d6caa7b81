import type { Author } from '../../db/author.ts'
import type { Html } from '../../lib/html.ts'
import { authorOf, type PageContext, spendWrite } from '../auth/guard.ts'
import { refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'

/** What an account keeps under names of its own: templates, presets, sheets of labels. */

const NAME_LENGTH_MAX = 40

/** The name in the form. Throws a refusal at its field. */
export function requireName({ form }: PageContext): string {
  const name = form.text('name')
  if (name !== '' && name.length <= NAME_LENGTH_MAX) return name
  throw refuseAt('name', `Enter a name of at most ${NAME_LENGTH_MAX} characters.`)
}

/** `what`: “template”. */
export const nameField = (
  context: PageContext,
  what: string,
  { initial, placeholder }: { initial?: string | undefined; placeholder?: string } = {},
): Html =>
  parts.field({
    ...typed(context, 'name', initial),
    label: 'Name',
    required: true,
    hint: `A ${what} with the same name is replaced.`,
    extra: { maxlength: NAME_LENGTH_MAX, ...(placeholder && { placeholder }) },
  })

/** The column that deletes a row. The form of `action` sends the id of the row as `field`. */
export const deleteColumn = (
  { user }: PageContext,
  action: string,
  what: string,
  field = what,
) => ({
  isHidden: true,
  cell: ({ id, name }: { id: number; name: string }) =>
    parts.buttonForm(user, action, 'Delete', {
      values: { [field]: id },
      title: `Delete the ${what} ${name}`,
    }),
})

/** Deletes the row that a form of `deleteColumn` names. */
export async function deleteNamed(
  context: PageContext,
  field: string,
  remove: (row: { author: Author; id: number }) => Promise<void>,
): Promise<void> {
  spendWrite(context)
  const id = Number(context.form.text(field))
  if (Number.isSafeInteger(id)) await remove({ author: authorOf(context), id })
}
