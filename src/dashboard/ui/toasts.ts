import { type Html, html, type Value } from '../../lib/html.ts'
import type { PageContext } from '../auth/guard.ts'
import * as parts from './components.ts'
import { icon } from './icons.ts'
import { PAGE_SIZE } from './pager.ts'

/** Messages over the list of links. */

/** Hidden without scripts. */
export const closeButton = (): Html => html`
  <button type="button" class="act close" hidden data-needs-script data-close
    aria-label="Close">${icon('x')}</button>`

/** The script removes the message when Undo no longer works. */
const message = (children: Value): Html => html`
  <section class="toast" data-brief role="status">
    <div class="row">${children}</div>
    ${closeButton()}
  </section>`

const DONE: Readonly<Record<string, string>> = {
  deleted: 'deleted',
  paused: 'paused',
  resumed: 'resumed',
  tagged: 'tagged',
  untagged: 'changed',
  restored: 'restored',
}

/**
 * The last action on the list: `done`, the number of links, and the codes that Undo restores,
 * separated by commas.
 */
export function doneToast({ user, query }: PageContext): Html | false {
  const { done = '', n, undo = '' } = query
  const verb = Object.hasOwn(DONE, done) && DONE[done]
  if (!verb) return false
  const codes = undo
    .split(',')
    .filter((code) => /^[A-Z0-9]{6,20}$/i.test(code))
    .slice(0, PAGE_SIZE)
  const number = /^\d{1,2}$/.test(n ?? '') ? Number(n) : Math.max(codes.length, 1)
  const text = html`<span>${parts.plural(number, 'link')} ${verb}.</span>`
  if (done !== 'deleted' || codes.length === 0) return message(text)
  const undoForm = parts.form(
    user,
    '/app/links/undo',
    [codes.map((code) => parts.hiddenFields({ code })), parts.button('Undo', 'plain')],
    { class: 'inline' },
  )
  return message([text, undoForm])
}
