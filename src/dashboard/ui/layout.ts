import { attributes, type Html, html, type Value } from '../../lib/html.ts'
import { ASSET_PATHS, LOGO_PATH } from '../assets.ts'
import type { Section } from '../auth/access.ts'
import type { Theme } from '../auth/cookies.ts'
import type { AnonymousContext, CurrentUser, PageContext } from '../auth/guard.ts'
import {
  errorOptions,
  FormRefusal,
  htmlResponse,
  isHtmx,
  isTemporary,
  pathOf,
  pathWithoutQuery,
  type ResponseOptions,
} from '../responses.ts'
import * as parts from './components.ts'
import { type IconName, icon } from './icons.ts'

/**
 * htmx adds no styles and evaluates no text. It does not copy attributes from a replaced element to
 * the new one: the policy forbids the `style` that browsers and their extensions set, for example
 * on a resized text field.
 */
const HTMX_CONFIG = JSON.stringify({
  attributesToSettle: [],
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
  responseHandling: [
    { code: '204', swap: false },
    { code: '[23]..', swap: true },
    { code: '[45]..', swap: false, error: true },
  ],
})

interface Content extends ResponseOptions {
  title: string
  /** What an earlier action did, by the name in `?done=`. */
  messages?: Readonly<Record<string, string>>
  main: Value
}

/** What a page says about the last action: see `PageContext`. */
type LastAction = Partial<Pick<PageContext, 'query' | 'refusal'>>

/** `links` in `/app/links/SPRING26`. */
export const sectionOf = (request: Request): string => pathOf(request).split(/[/?]/, 3)[2] ?? ''

interface PageProps extends Content {
  /** The page above this one. */
  back?: { href: string; label: string }
  /** Heading, if it is not the title. */
  heading?: Html
  /** Below the heading: the navigation between pages about one subject. */
  tabs?: Html
  /** The entry of this page in the navigation of its section, by its address. */
  at?: string
}

/** The names of sections. */
export const SECTIONS: Readonly<Record<Section, string>> = {
  account: 'Account',
  service: 'Service',
}

/** A page with the navigation, for a signed-in user. */
export function page(
  context: Pick<PageContext, 'user'> & Partial<Pick<PageContext, 'request'>> & LastAction,
  props: PageProps,
): Response {
  const { user, request } = context
  const { title, back, heading, tabs, at } = props
  const current = request && sectionOf(request)
  const sections = user.offers.filter(({ place }) => place === 'navigation')
  const items = sections.map(({ label, href }) => {
    const isCurrent = label.toLowerCase() === current
    const all = { href, 'aria-current': isCurrent ? 'page' : undefined }
    return html`<li><a ${attributes(all)}>${label}</a></li>`
  })
  const top = html`
    <header class="top">
      <a class="brand" href="/app">${logo()}Hopcode</a>
      <nav class="sections" aria-label="Main"><ul>${items}</ul></nav>
      <a class="go-link" href="/app/go" data-go>${icon('search')} Go to <kbd>Ctrl K</kbd></a>
      ${accountMenu(user)}
    </header>`
  const content = html`${back && backLink(back)}${heading ?? html`<h1>${title}</h1>`}${tabs}
    ${contentOf(context, props)}`
  const section = user.offers.find((one) => one.href === at && one.section)?.section
  const main = section
    ? html`<div class="framed">${sideNavigation(user, section, at)}
        <div class="${section}">${content}</div></div>`
    : content
  const zone = user.hasChosenZone ? user.zone : undefined
  // Browsers report other statuses of scripts' requests in the console.
  const { refusal } = context
  const isPart = refusal && !isTemporary(refusal) && request && wantsFragment(request)
  const shown = isPart ? { ...props, status: 200 } : props
  return documentOf({ top, main, theme: user.theme, zone }, context, shown)
}

/** Beside the pages of a section, on narrow screens above them. */
function sideNavigation({ offers, account }: CurrentUser, section: Section, at?: string): Html {
  const name = SECTIONS[section]
  const items = offers
    .filter((one) => one.section === section)
    .map(({ label, href }) => {
      const all = attributes({ href, 'aria-current': href === at ? 'page' : undefined })
      return html`<li><a ${all}>${label}</a></li>`
    })
  return html`<nav class="tabs side" aria-label="${name}">
    <p class="side-name">${section === 'account' ? account.name : name}</p>
    <ul>${items}</ul></nav>`
}

/** What a page says about the last action, and its own content. */
const contentOf = ({ query, refusal }: LastAction, { messages = {}, main }: Content): Html => {
  const { done = '' } = query ?? {}
  return html`
    ${Object.hasOwn(messages, done) && parts.notice('good', html`<p>${messages[done]}</p>`)}
    ${refusal && !(refusal instanceof FormRefusal) && parts.errorNotice(refusal.message)}
    ${main}`
}

const backLink = ({ href, label }: { href: string; label: string }): Html =>
  html`<p class="back"><a href="${href}">${icon('chevron-left')} ${label}</a></p>`

type AnonymousRequest = Pick<AnonymousContext, 'deps' | 'request'> & LastAction

/** A page without a session, like the sign-in: one card with one form. */
export function authPage(context: AnonymousRequest, props: Content): Response {
  const brand = html`<a class="brand" href="/app">${logo()}Hopcode</a>`
  const top = html`<header class="top auth">${brand}</header>`
  const content = html`<h1>${props.title}</h1>${contentOf(context, props)}`
  const main = html`<div class="card auth">${content}</div>`
  return documentOf({ top, main, theme: themeOf(context), width: 'narrow' }, context, props)
}

/** A page for everybody, without navigation. `skip`: the link to the content, in its language. */
export function publicPage(
  context: AnonymousRequest,
  props: Content & Required<Pick<Frame, 'language' | 'skip'>>,
): Response {
  const { operatorName, operatorLogo } = context.deps
  const image = operatorLogo === undefined ? logo() : operatorImage()
  const name = operatorName ?? (operatorLogo === undefined ? 'Hopcode' : '')
  const top = html`<header class="top"><span class="brand">${image}${name}</span></header>`
  const main = html`<h1>${props.title}</h1>${contentOf(context, props)}`
  const { language, skip } = props
  return documentOf({ top, main, theme: themeOf(context), language, skip }, context, props)
}

const themeOf = ({ deps, request }: AnonymousRequest) => deps.cookies.findTheme(request)

/** Whether htmx requests a part of the page. */
export const wantsFragment = (request: Request): boolean =>
  isHtmx(request) && request.headers.get('hx-history-restore-request') !== 'true'

interface Frame {
  top: Html
  main: Html
  theme: Theme | undefined
  /** The time zone that the account has chosen. */
  zone?: string | undefined
  width?: 'wide' | 'narrow'
  language?: string
  skip?: string
}

const SKIP = 'Skip to the content'

function documentOf(
  { top, main, theme, zone, width = 'wide', language = 'en', skip = SKIP }: Frame,
  { refusal }: LastAction,
  { title, cookies, headers, status }: Content,
): Response {
  const markup = html`<!doctype html>
<html lang="${language}" ${attributes({ 'data-theme': theme, 'data-zone': zone })}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${theme ?? 'light dark'}">
<meta name="robots" content="noindex">
<meta name="htmx-config" content="${HTMX_CONFIG}">
<title>${title} · Hopcode</title>
<link rel="icon" href="${ASSET_PATHS.icon}" type="image/svg+xml">
<link rel="apple-touch-icon" href="${ASSET_PATHS.maskable}">
<link rel="manifest" href="${ASSET_PATHS.manifest}">
<link rel="preload" href="${ASSET_PATHS.font}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${ASSET_PATHS.style}">
<script src="${ASSET_PATHS.htmx}" defer></script>
<script src="${ASSET_PATHS.script}" defer></script>
</head>
<body>
<a class="skip" href="#main">${skip}</a>
${top}
<main id="main" tabindex="-1" class="${width}">${main}</main>
<div id="status" role="status" aria-live="polite"></div>
</body>
</html>
`
  const refused = refusal && errorOptions(refusal)
  return htmlResponse(markup, {
    status: status ?? refused?.status ?? 200,
    headers: { ...headers, ...refused?.headers },
    ...(cookies && { cookies }),
  })
}

const operatorImage = () => html`<img src="${LOGO_PATH}" alt="" height="28">`

const logo = () => html`<img src="${ASSET_PATHS.icon}" alt="" width="28" height="28">`

const THEMES: readonly { value: string; label: string; iconName: IconName }[] = [
  { value: 'system', label: 'System', iconName: 'monitor' },
  { value: 'light', label: 'Light', iconName: 'sun' },
  { value: 'dark', label: 'Dark', iconName: 'moon' },
]

/** The page on which an owner of the service creates a further account. */
export const NEW_ACCOUNT = '/app/service/accounts/new'

/**
 * The menu under the person: accounts, and what belongs to the one that is open. The browser opens
 * and closes it, also without scripts.
 */
function accountMenu(user: CurrentUser): Html {
  const { account, others, person } = user
  const { email } = person
  const signOut = html`<button class="menu-item">${icon('log-out')} Sign out</button>`
  const add = html`<a class="menu-item" href="${NEW_ACCOUNT}">${icon('plus')} New account…</a>`
  return html`
    <div class="current-user">
      <button type="button" class="current-user-button" popovertarget="account-menu"
        title="${account.name}">
        <span class="initial" data-initial="${email.slice(0, 1).toUpperCase()}"></span>
        <span class="email">${email}</span>
        ${icon('chevron-down')}
      </button>
      <div id="account-menu" class="menu" popover>
        <p class="menu-title"><strong>${account.name}</strong></p>
        ${others.map(({ id, name }) => accountChoice(user, id, name))}
        ${parts.offer(user, NEW_ACCOUNT, add)}
        <div class="menu-last">
          <a class="menu-item" href="/app/account">${icon('user')} Account</a>
          <a class="menu-item" href="/app/account/security">${icon('shield')} Security</a>
          ${themeForm(user)}
        </div>
        ${parts.form(user, '/app/sign-out', signOut, { class: 'menu-last' })}
      </div>
    </div>`
}

const accountChoice = (user: CurrentUser, id: number, name: string): Html =>
  parts.form(
    user,
    '/app/account/open',
    [
      parts.hiddenFields({ account: id }),
      html`<button class="menu-item">${icon('user')} Open ${name}</button>`,
    ],
    { class: 'inline' },
  )

function themeForm(user: CurrentUser): Html {
  const { path, theme } = user
  const choices = THEMES.map(({ value, label, iconName }) => {
    const isChosen = value === (theme ?? 'system')
    return html`<button name="theme" value="${value}"
      aria-pressed="${String(isChosen)}">${icon(iconName)} ${label}</button>`
  })
  return parts.form(
    user,
    '/app/theme',
    [
      path !== undefined && parts.hiddenFields({ next: path }),
      html`<div class="theme" role="group" aria-label="Theme">${choices}</div>`,
    ],
    {
      'data-theme-form': true,
      'hx-post': '/app/theme',
      'hx-swap': 'none',
    },
  )
}

interface ConfirmProps extends Pick<PageProps, 'title' | 'back' | 'at'> {
  /** `note`: what can be undone. */
  kind?: 'note' | 'bad'
  /** What the action does, and to what. */
  warning: Value
  /** Facts and advice below the warning. */
  about?: Value
  /** Text of the button, for example `Revoke the key now`. */
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

/** Rows of a page of a list. */
export const PAGE_SIZE = 50
const PAGE_MAX = 1_000_000_000

/** The number of a page from its `?page=`, from 1. */
export const pageNumber = (text: string | undefined): number =>
  /^[1-9]\d*$/.test(text ?? '') ? Math.min(Number(text), PAGE_MAX) : 1

export const lastPage = (total: number): number => Math.max(1, Math.ceil(total / PAGE_SIZE))

/** Links to the previous and the next page; nothing if there is only one. */
export function pager(page: number, total: number, pathOf: (page: number) => string): Html | '' {
  const last = lastPage(total)
  if (last === 1) return ''
  const step = (label: string, to: number, rel: string) =>
    to < 1 || to > last
      ? html`<span></span>`
      : html`<a ${attributes({ class: 'button plain', href: pathOf(to), rel })}>${label}</a>`
  return html`
    <nav class="pager" aria-label="Pages">
      ${step('← Previous', page - 1, 'prev')}
      <span>Page ${parts.count(page)} of ${parts.count(last)}</span>
      ${step('Next →', page + 1, 'next')}
    </nav>`
}
