import { html, type Value } from '../../lib/html.ts'
import type { PageContext } from '../auth/guard.ts'
import * as parts from './components.ts'
import { type PageProps, page } from './layout.ts'

interface ConfirmProps extends Pick<PageProps, 'title' | 'current' | 'back'> {
  /** `note`: what can be undone. */
  kind?: 'note' | 'bad'
  /** What the action does, and to what. */
  warning: Value
  /** Facts and advice below the warning. */
  about?: Value
  /** The path that the form is sent to. */
  action: string
  /** Of the button, for example `Revoke the key now`. */
  label: string
  /** Hidden fields. */
  values?: Readonly<Record<string, string | number>> | undefined
  /** Fields to fill in. */
  fields?: Value
  cancel?: { label: string; href: string }
  /** Alternatives below the buttons. */
  after?: Value
}

/** The page that asks before an action that destroys something. */
export function confirmPage(context: PageContext, props: ConfirmProps): Response {
  const { user } = context
  const { kind = 'bad', warning, about, action, label, values = {}, fields, cancel, after } = props
  const back = cancel && parts.linkButton(cancel.label, cancel.href)
  const send = parts.button(label, 'danger')
  return page(context, {
    ...props,
    main: html`<div class="card">
      ${parts.notice(kind, html`<p>${warning}</p>`)}
      ${about}
      ${
        fields
          ? parts.form(user, action, [
              parts.hiddenFields(values),
              fields,
              back ? html`<div class="row">${send}${back}</div>` : send,
            ])
          : html`<div class="row">
              ${parts.buttonForm(user, action, label, { look: 'danger', values })}
              ${back}
            </div>`
      }
      ${after}
    </div>`,
  })
}
