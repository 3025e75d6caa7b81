import type { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import type { CurrentUser } from '../auth/guard.ts'
import { isTemporary } from '../responses.ts'
import * as parts from './components.ts'
import { bare, linkPath, passcodeOnce, qrPicture } from './link-parts.ts'
import { closeButton } from './toasts.ts'

/** The form that creates a link, and the message with the result. */

/** A code that was just created, reserved or found. A reused link has no passcode to show. */
export interface Created {
  kind: 'created' | 'reused' | 'reserved'
  code: string
  shortUrl: string
  url: string | null
  passcode: string | null
}

export interface CreateFormProps {
  url?: string | undefined
  code?: string | undefined
  error?: AppError | undefined
  /** The field that the error belongs to. */
  field?: 'url' | 'code' | undefined
  /** The form replaces the one on the page. */
  isFragment?: boolean
}

export function createForm(user: CurrentUser, props: CreateFormProps): Html {
  const { url, code, error, field, isFragment = false } = props
  const errorOf = (name: string) =>
    error && field === name && !isTemporary(error) ? error.message : undefined
  const focus = (name: string) => ({
    autofocus: error ? field === name : isFragment && name === 'url',
  })
  return parts.form(
    user,
    '/app/links',
    [
      parts.urlField({
        name: 'url',
        label: 'Shorten a URL',
        value: url,
        error: errorOf('url'),
        extra: { placeholder: 'Paste a URL to shorten', ...focus('url') },
      }),
      parts.field({
        name: 'code',
        label: 'Custom code (optional)',
        value: code,
        error: errorOf('code'),
        autocomplete: 'off',
        extra: {
          placeholder: 'Custom code',
          maxlength: 20,
          spellcheck: 'false',
          autocapitalize: 'characters',
          'hx-get': '/app/links/code',
          'hx-trigger': 'input changed delay:250ms',
          'hx-target': '#code-status',
          'hx-swap': 'innerHTML',
          'hx-sync': 'this:replace',
          ...focus('code'),
        },
      }),
      parts.button('Shorten'),
      html`<p id="code-status" role="status"></p>`,
    ],
    {
      id: 'create',
      class: 'create',
      'hx-post': '/app/links',
      'hx-target': 'this',
      'hx-swap': 'outerHTML',
      // A second Enter must not replace the response with the passcode.
      'hx-sync': 'this:drop',
    },
  )
}

const TITLES = {
  created: 'Your short link is ready',
  reused: 'You already have a short link for this URL',
  reserved: 'The code is yours',
}

/** The result, shown over the list. The script copies the short URL. */
export function createdToast(user: CurrentUser, created: Created): Html {
  const { kind, code, shortUrl, url, passcode } = created
  const id = `new-${code}`
  const short = html`<data id="${id}" value="${shortUrl}">${bare(shortUrl)}</data>`
  return html`
    <section class="toast" aria-labelledby="toast-title" data-copy-now="${id}">
      ${qrPicture(code, { size: 96 })}
      <div>
        <h2 id="toast-title">${TITLES[kind]}</h2>
        <p><a class="code" href="${linkPath(code)}">${short}</a></p>
        ${url === null && html`<p>It has no destination yet: set one on its page.</p>`}
        <div class="row">
          ${parts.copyButton(id, 'short URL')}
          ${
            kind !== 'reused' &&
            parts.buttonForm(user, `${linkPath(code)}/delete`, 'Undo', {
              title: `Undo: delete ${code}`,
            })
          }
        </div>
        ${
          passcode !== null &&
          html`<details><summary>For the API: passcode, shown once</summary>
            ${passcodeOnce(passcode)}</details>`
        }
      </div>
      ${closeButton()}
    </section>`
}
