import { type Html, html } from '../../lib/html.ts'
import * as parts from './components.ts'
import { closeButton } from './toasts.ts'

/** Dialogs that the script opens over the list: a QR code, and the keyboard shortcuts. */

const SHORTCUTS = [
  ['/', 'Search; also Ctrl+K'],
  ['n', 'New link'],
  ['j', 'Next link'],
  ['k', 'Previous link'],
  ['Enter', 'Open the page of the link'],
  ['← →', 'Select, copy, open, QR code'],
  ['c', 'Copy the short URL'],
  ['q', 'Show the QR code'],
  ['x', 'Select the link'],
  ['?', 'Show these shortcuts'],
] as const

export const listDialogs = (): Html => html`
  <dialog id="qr-dialog" class="dialog" aria-labelledby="qr-title">
    <h2 id="qr-title" class="code"></h2>
    <img class="qr" alt="" width="240" height="240">
    <p class="row">
      <a class="button plain" data-file="qr.png" download>Download PNG</a>
      <a class="button plain" data-file="qr.svg" download>Download SVG</a>
    </p>
    ${closeButton()}
  </dialog>
  <dialog id="shortcuts" class="dialog" aria-labelledby="shortcuts-title">
    <h2 id="shortcuts-title">Keyboard shortcuts</h2>
    ${parts.facts(SHORTCUTS.map(([key, action]) => [html`<kbd>${key}</kbd>`, action]))}
    <p class="hint after">Paste a URL anywhere on this page to shorten it.</p>
    ${closeButton()}
  </dialog>`
