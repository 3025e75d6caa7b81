import { html, type Value } from '../../lib/html.ts'
import type { CurrentUser } from '../auth/guard.ts'
import * as parts from './components.ts'
import { type PageProps, page } from './layout.ts'

interface ConfirmProps
  extends Pick<PageProps, 'title' | 'current' | 'back' | 'error' | 'isRefused'> {
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
export function confirmPage(user: CurrentUser, props: ConfirmProps): Response {
  const { kind = 'bad', warning, about, action, label, values = {}, fields, cancel, after } = props
  const back = cancel && parts.linkButton(cancel.label, cancel.href)
  const send = parts.button(label, 'danger')
  return page(user, {
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
