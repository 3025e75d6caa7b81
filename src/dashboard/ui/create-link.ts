import { type Html, html } from '../../lib/html.ts'
import type { CurrentUser, PageContext, Query } from '../auth/guard.ts'
import * as parts from './components.ts'
import { typed } from './form.ts'
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

/** The URL from a bookmarklet or another app; some apps send it within a text. */
const sharedUrl = ({ url, text = '' }: Query): string | undefined =>
  url ?? /https?:\/\/\S+/i.exec(text)?.[0]

/** `isFragment`: it replaces the form on the page. */
export function createForm(context: PageContext, isFragment: boolean): Html {
  const url = typed(context, 'url', sharedUrl(context.query))
  const code = typed(context, 'code')
  const startsAtUrl = url.error !== undefined || (isFragment && code.error === undefined)
  return parts.form(
    context.user,
    '/app/links',
    [
      parts.urlField({
        ...url,
        label: 'Shorten a URL',
        extra: { placeholder: 'Paste a URL to shorten', autofocus: startsAtUrl },
      }),
      parts.field({
        ...code,
        label: 'Custom code (optional)',
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
          autofocus: code.error !== undefined,
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
