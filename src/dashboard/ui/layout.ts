import { attributes, type Html, html, type Value } from '../../lib/html.ts'
import { type Extra, htmlAnswer } from '../answers.ts'
import { ASSET_PATHS } from '../assets.ts'
import type { Visitor } from '../auth/guard.ts'
import { buttonForm } from './components.ts'

export type Section = 'links' | 'numbers' | 'keys' | 'account' | 'service'

const SECTIONS: readonly { name: Section; label: string; isForOwner: boolean }[] = [
  { name: 'links', label: 'Links', isForOwner: false },
  { name: 'numbers', label: 'Numbers', isForOwner: false },
  { name: 'keys', label: 'Keys', isForOwner: false },
  { name: 'account', label: 'Account', isForOwner: false },
  { name: 'service', label: 'Service', isForOwner: true },
]

/** htmx writes no styles into the page and evaluates no text; answers to bad forms are shown. */
const HTMX_CONFIG = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
  responseHandling: [
    { code: '204', swap: false },
    { code: '[23]..', swap: true },
    { code: '422', swap: true },
    { code: '[45]..', swap: false, error: true },
  ],
})

interface PageOptions extends Extra {
  title: string
  /** The section that the page is in, marked in the navigation. */
  current?: Section
  main: Value
}

/** A whole page of somebody who is signed in. */
export function page(visitor: Visitor, { title, current, main, ...extra }: PageOptions): Response {
  const items = SECTIONS.filter(({ isForOwner }) => !isForOwner || visitor.account.isOwner).map(
    ({ name, label }) => {
      const all = { href: `/app/${name}`, 'aria-current': name === current ? 'page' : undefined }
      return html`<li><a ${attributes(all)}>${label}</a></li>`
    },
  )
  const top = html`
    <header class="top">
      <a class="brand" href="/app">${mark()}Hopcode</a>
      <nav aria-label="Main"><ul>${items}</ul></nav>
      <div class="who">
        <span class="email">${visitor.account.email}</span>
        ${buttonForm(visitor, { action: '/app/sign-out', label: 'Sign out' })}
      </div>
    </header>`
  return whole({ title, top, main: html`<h1>${title}</h1>${main}`, width: 'wide' }, extra)
}

/** A whole page for somebody who is not signed in: one thing to do. */
export function doorPage({ title, main, ...extra }: Omit<PageOptions, 'current'>): Response {
  const brand = html`<a class="brand" href="/app">${mark()}Hopcode</a>`
  const top = html`<header class="top door">${brand}</header>`
  const body = html`<div class="card door"><h1>${title}</h1>${main}</div>`
  return whole({ title, top, main: body, width: 'narrow' }, extra)
}

/** A part of a page, for htmx to put in its place. */
export const fragment = (markup: Html, extra: Extra = {}): Response => htmlAnswer(markup, extra)

/** Whether htmx asks, and a part of the page is enough. */
export const wantsFragment = ({ headers }: Request): boolean =>
  headers.get('hx-request') === 'true' && headers.get('hx-history-restore-request') !== 'true'

interface Whole {
  title: string
  top: Html
  main: Html
  width: 'wide' | 'narrow'
}

function whole({ title, top, main, width }: Whole, extra: Extra): Response {
  const markup = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="htmx-config" content="${HTMX_CONFIG}">
<title>${title} · Hopcode</title>
<link rel="icon" href="${ASSET_PATHS.icon}" type="image/svg+xml">
<link rel="stylesheet" href="${ASSET_PATHS.style}">
<script src="${ASSET_PATHS.htmx}" defer></script>
<script src="${ASSET_PATHS.script}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${top}
<main id="main" tabindex="-1" class="${width}">${main}</main>
<div id="says" class="says" role="status" aria-live="polite"></div>
</body>
</html>
`
  return htmlAnswer(markup, extra)
}

const mark = () =>
  html`<img ${attributes({ src: ASSET_PATHS.icon, alt: '', width: 28, height: 28 })}>`
