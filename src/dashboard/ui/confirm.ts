import { html, type Value } from '../../lib/html.ts'
import type { PageContext } from '../auth/guard.ts'
import { pathWithoutQuery } from '../responses.ts'
import * as parts from './components.ts'
import { type PageProps, page } from './layout.ts'

interface ConfirmProps extends Pick<PageProps, 'title' | 'back'> {
  /** `note`: what can be undone. */
  kind?: 'note' | 'bad'
  /** What the action does, and to what. */
  warning: Value
  /** Facts and advice below the warning. */
  about?: Value
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

/** The page that asks before an action that destroys something. Its form has the same path. */
export function confirmPage(context: PageContext, props: ConfirmProps): Response {
  const { kind = 'bad', warning, about, label, values = {}, fields, cancel, after } = props
  return page(context, {
    ...props,
    main: html`<div class="card">
      ${parts.notice(kind, html`<p>${warning}</p>`)}
      ${about}
      ${parts.form(context.user, pathWithoutQuery(context.request), [
        parts.hiddenFields(values),
        fields,
        html`<div class="row">
          ${parts.button(label, 'danger')}
          ${cancel && parts.linkButton(cancel.label, cancel.href)}
        </div>`,
      ])}
      ${after}
    </div>`,
  })
}
