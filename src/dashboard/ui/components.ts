import { PASSWORD_MIN_LENGTH } from '../../accounts/credentials.ts'
import type { AccountRow, KeyScope } from '../../accounts/store.ts'
import type { Quota } from '../../config.ts'
import { formatBytes } from '../../lib/bytes.ts'
import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html, type Value } from '../../lib/html.ts'
import type { CurrentUser, PageContext } from '../auth/guard.ts'
import { errorOf } from './form.ts'

/** Parts of pages. All text that goes in is escaped. */

type Extra = Readonly<Record<string, string | number | boolean>>

/** Who sends a form: the current user, or a browser without a session. */
type Sender = Pick<CurrentUser, 'csrf'> & Partial<Pick<CurrentUser, 'may'>>

/**
 * A form that changes something. Left out if the user may not send it. `extra`: further
 * attributes, like `hx-post` or `enctype`.
 */
export const form = (
  { csrf, may }: Sender,
  action: string,
  children: Value,
  extra: Extra = {},
): Html => {
  if (may && !may('POST', action)) return html``
  return html`
  <form method="post" ${attributes({ action, class: 'form', ...extra })}>
    <input type="hidden" name="csrf" value="${csrf}">
    ${children}
  </form>`
}

/** A link to a page, with what is around it. Left out if the user may not open the page. */
export const offer = ({ may }: Pick<CurrentUser, 'may'>, href: string, link: Value): Value =>
  may('GET', href) && link

export const hiddenFields = (values: Readonly<Record<string, string | number>>): Html[] =>
  Object.entries(values).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )

interface FieldProps {
  name: string
  label: string
  /** Type of the `<input>`; `textarea` has several lines. */
  type?:
    | 'text'
    | 'email'
    | 'password'
    | 'search'
    | 'number'
    | 'file'
    | 'datetime-local'
    | 'time'
    | 'color'
    | 'textarea'
  value?: string | undefined
  hint?: Value
  /** The problem of the value. Shown beside the field and read out with it. */
  error?: string | undefined
  required?: boolean
  /** Default: off for a text or a number. */
  autocomplete?: string
  /** Further attributes, like `maxlength`, `autofocus` or `inputmode`. */
  extra?: Extra
}

/** Types of fields about links and settings: what was typed before for another one is no help. */
const OF_LINKS = ['text', 'number']

/** Characters of a value that a page shows again: as long as a destination may be. */
const VALUE_LENGTH_MAX = 8192
const EMAIL_LENGTH_MAX = 254

/**
 * A labelled field with its hint and its error. Passwords are never put back into a page, nor are
 * values that are too long for their field, because a shortened value would be a different one.
 */
export function field(props: FieldProps): Html {
  const { name, label, type = 'text', value = '', hint, error } = props
  const describedBy = [hint && `field-${name}-hint`, error && `field-${name}-error`]
  const common = {
    id: `field-${name}`,
    name,
    required: props.required,
    autocomplete: props.autocomplete ?? (OF_LINKS.includes(type) ? 'off' : undefined),
    'aria-invalid': error ? 'true' : undefined,
    'aria-describedby': describedBy.filter(Boolean).join(' ') || undefined,
    ...props.extra,
  }
  const usualMax = type === 'email' ? EMAIL_LENGTH_MAX : VALUE_LENGTH_MAX
  const isTooLong = value.length > Number(props.extra?.maxlength ?? usualMax)
  const shown = type === 'password' || type === 'file' || isTooLong ? undefined : value
  const input =
    type === 'textarea'
      ? html`<textarea ${attributes(common)}>
${value}</textarea>`
      : html`<input ${attributes({ ...common, type, value: shown })}>`
  const control = type === 'password' ? revealable(name, input) : input
  return labelled({ name, label, hint, error }, control)
}

/** A password with a button that shows it. The button is hidden without scripts. */
const revealable = (name: string, input: Html): Html => html`
  <div class="copy">
    ${input}
    <button type="button" class="button plain" hidden data-needs-script
      data-reveal="field-${name}" aria-controls="field-${name}" aria-pressed="false"
      aria-label="Show the password">Show</button>
  </div>`

const labelled = (
  { name, label, hint, error }: Pick<FieldProps, 'name' | 'label' | 'hint' | 'error'>,
  input: Html,
): Html => html`
  <div class="field">
    <label for="field-${name}">${label}</label>
    ${hint ? html`<p class="hint" id="field-${name}-hint">${hint}</p>` : ''}
    ${input}
    ${error ? html`<p class="error" id="field-${name}-error">${error}</p>` : ''}
  </div>`

export type FieldOverrides = Partial<FieldProps>

export const urlField = (props: FieldOverrides & Pick<FieldProps, 'name' | 'label'>): Html =>
  field({
    ...props,
    extra: { placeholder: 'https://', inputmode: 'url', spellcheck: 'false', ...props.extra },
  })

/** The password that the account has now, in the field `current`. */
export const currentPassword = (
  { user, refusal }: Pick<PageContext, 'user' | 'refusal'>,
  props: FieldOverrides = {},
): Html[] => [
  // For password managers, which need to know the account.
  html`<input name="username" value="${user.person.email}" autocomplete="username" hidden>`,
  field({
    name: 'current',
    label: 'Your password',
    error: errorOf(refusal, 'current'),
    type: 'password',
    required: true,
    autocomplete: 'current-password',
    ...props,
  }),
]

export const emailField = (props: FieldOverrides): Html =>
  field({ name: 'email', label: 'E-mail address', type: 'email', ...props })

export const newPassword = (props: FieldOverrides & Pick<FieldProps, 'label'>): Html =>
  field({
    name: 'password',
    type: 'password',
    required: true,
    autocomplete: 'new-password',
    ...props,
    extra: { minlength: PASSWORD_MIN_LENGTH, ...props.extra },
  })

/** A field for a code of an authenticator app, or for a recovery code. */
export const codeField = ({ refusal }: Pick<PageContext, 'refusal'>, props: FieldOverrides): Html =>
  field({
    name: 'code',
    label: 'Code',
    error: errorOf(refusal, 'code'),
    required: true,
    autocomplete: 'one-time-code',
    ...props,
    extra: { spellcheck: 'false', maxlength: CODE_LENGTH_MAX, ...props.extra },
  })

/** A recovery code with spaces. */
const CODE_LENGTH_MAX = 40

interface ChoiceProps {
  name: string
  label: string
  choices: readonly { value: string; label: string }[]
  value?: string | undefined
}

export const select = (props: ChoiceProps & { hint?: Value }): Html =>
  labelled(props, menu({ ...props, id: `field-${props.name}` }))

/** A choice whose label is for screen readers, unless `id` is that of a visible label. */
export function menu({ id, name, label, choices, value }: ChoiceProps & { id?: string }): Html {
  const all = attributes({ name, id, 'aria-label': id === undefined ? label : undefined })
  const options = choices.map((choice) => {
    const chosen = attributes({ value: choice.value, selected: choice.value === value })
    return html`<option ${chosen}>${choice.label}</option>`
  })
  return html`<select ${all}>${options}</select>`
}

/** A checkbox, sent as `1`. */
export const checkbox = ({
  name,
  label,
  isChecked = false,
}: Pick<FieldProps, 'name' | 'label'> & { isChecked?: boolean }): Html => html`
  <p class="check"><label>
    <input type="checkbox" ${attributes({ name, value: '1', checked: isChecked })}> ${label}
  </label></p>`

export const radios = ({ name, label, choices, value }: ChoiceProps): Html => html`
  <fieldset>
    <legend>${label}</legend>
    ${choices.map((choice) => {
      const all = { name, value: choice.value, checked: choice.value === value }
      return html`<p class="check"><label>
        <input type="radio" ${attributes(all)}> ${choice.label}</label></p>`
    })}
  </fieldset>`

type Look = 'primary' | 'plain' | 'danger'

/** Submits the form around it. */
export function button(label: string, look: Look = 'primary', extra: Extra = {}): Html {
  const all = attributes({ type: 'submit', class: `button ${look}`, ...extra })
  return html`<button ${all}>${label}</button>`
}

/** A link to a page that looks like a button. */
export const linkButton = (label: string, href: string, look: Look = 'plain'): Html =>
  html`<a class="button ${look}" href="${href}">${label}</a>`

interface ButtonFormOptions {
  look?: Look
  /** Hidden fields. */
  values?: Readonly<Record<string, string | number>>
  /** A longer label for screen readers. */
  title?: string
}

/** A button that changes something: a form of its own, so that it works without scripts. */
export const buttonForm = (
  sender: Sender,
  action: string,
  label: string,
  { look = 'plain', values = {}, title }: ButtonFormOptions = {},
): Html =>
  form(
    sender,
    action,
    [hiddenFields(values), button(label, look, title ? { 'aria-label': title } : {})],
    { class: 'inline' },
  )

/** A search form. It is sent to the page's own path. */
export const searchForm = (action: string, props: Omit<FieldProps, 'type'>): Html => html`
  <form class="form search" method="get" action="${action}" role="search">
    ${field({ ...props, type: 'search' })}
    ${button('Find', 'plain')}
  </form>`

/** An epoch time: UTC from the server, the browser's time zone where scripts run. */
export const time = (epochMs: number): Html =>
  html`<time datetime="${isoTime(epochMs)}">${utcText(epochMs)}</time>`

/** `2026-03-01 12:00 UTC` */
export const utcText = (epochMs: number): string =>
  `${isoTime(epochMs).slice(0, 16).replace('T', ' ')} UTC`

/** The time left until an epoch time. Counts down where scripts run. */
export function countdown(endsAt: number, now: number): Html {
  const seconds = Math.max(0, Math.ceil((endsAt - now) / 1000))
  const minutes = Math.ceil(seconds / 60)
  const hours = Math.floor(minutes / 60)
  const short = hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`
  const long = hours >= 48 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : short
  const shown = seconds < 60 ? `${seconds} s` : long
  return html`<time datetime="${isoTime(endsAt)}" data-countdown>${shown}</time>`
}

/** A secret in the only response that shows it, with a button that copies it. */
export const secretOnce = (label: string, secret: string): Html => html`
  <div class="secret">
    <label for="secret">${label}</label>
    <div class="copy">
      <input id="secret" class="code" readonly value="${secret}" size="${secret.length}"
        autocomplete="off" spellcheck="false" aria-describedby="secret-hint">
      ${copyButton('secret', label)}
    </div>
    <p class="hint" id="secret-hint">Copy it now. You won’t see it again.</p>
  </div>`

/** Copies the value of the element with this id. Hidden without scripts. */
export const copyButton = (id: string, what: string): Html =>
  html`<button type="button" class="button plain" hidden data-copy="${id}"
    aria-label="Copy ${what}">Copy</button>`

/** Something that happened (`good`), matters (`note`) or went wrong (`bad`). */
export function notice(kind: 'good' | 'note' | 'bad', children: Value): Html {
  const role = kind === 'bad' ? 'alert' : 'status'
  return html`<div class="notice ${kind}" role="${role}">${children}</div>`
}

/** An error that belongs to no field. */
export const errorNotice = (message: string): Html => notice('bad', html`<p>${message}</p>`)

/** Replacement of an empty list: its purpose, and the first step. */
export const emptyState = (title: string, children: Value): Html =>
  html`<div class="empty"><h2>${title}</h2>${children}</div>`

export const card = (title: string, children: Value): Html =>
  html`<section class="card"><h2>${title}</h2>${children}</section>`

/** Names and values. False leaves a line out. */
export const facts = (lines: readonly (readonly [Value, Value] | false)[]): Html => {
  const shown = lines.flatMap((line) => (line ? [line] : []))
  return html`<dl class="facts">${shown.map(
    ([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`,
  )}</dl>`
}

/** What an account stores, with the quotas of its plan if there are any. */
export function storedFacts(
  { linkCount, urlBytes }: Pick<AccountRow, 'linkCount' | 'urlBytes'>,
  { linksMax, urlBytesMax }: Quota,
): [string, string][] {
  const links = count(linkCount)
  const bytes = formatBytes(urlBytes)
  return [
    ['Links', linksMax > 0 ? `${links} of ${count(linksMax)}` : links],
    ['Stored URLs', urlBytesMax > 0 ? `${bytes} of ${formatBytes(urlBytesMax)}` : bytes],
  ]
}

interface Column<Item> {
  cell: (item: Item) => Value
  isNumber?: boolean
  /** Its label is for screen readers, like that of buttons. */
  isHidden?: boolean
}

/** Columns by their labels. A function alone is the cell of an item. */
type Columns<Item> = Readonly<Record<string, Column<Item> | ((item: Item) => Value)>>

/**
 * A table that becomes a list of cards on narrow screens, unless its columns fit them. `widths`: of
 * each column `s`, `m`, `l`, `x` for a button, or `-` for a share of the rest. Each cell then has
 * one line.
 */
export function table<Item>(
  caption: string,
  items: readonly Item[],
  columns: Columns<Item>,
  { isNarrow = false, widths = '' } = {},
): Html {
  const widthOf = widths.split(' ')
  const all = Object.entries(columns).map(([label, column], at) => {
    const { cell, isNumber, isHidden }: Column<Item> =
      typeof column === 'function' ? { cell: column } : column
    const shown = isHidden ? html`<span class="visually-hidden">${label}</span>` : label
    const className = isNumber && 'number'
    const width = widthOf[at] && `width-${widthOf[at]}`
    const head = html`<th scope="col" ${attributes({ class: className || width })}>${shown}</th>`
    const extra = attributes({ class: className, 'data-label': !isHidden && label })
    return { head, cell, extra }
  })
  const cellOf = (value: Value, extra: Html) =>
    html`<td ${extra}>${value === '' ? '' : html`<div>${value}</div>`}</td>`
  return html`
    <table class="table${!isNarrow && ' stacked'}${widths && ' fixed'}">
      <caption class="visually-hidden">${caption}</caption>
      <thead><tr>${all.map(({ head }) => head)}</tr></thead>
      <tbody>${items.map(
        (item) => html`<tr>${all.map(({ cell, extra }) => cellOf(cell(item), extra))}</tr>`,
      )}</tbody>
    </table>`
}

/** A bar behind a row of a table in `.shares`. `share`: of the longest bar, 0 to 1. */
export const shareBar = (share: number): Html => {
  const size = attributes({ width: `${Math.round(share * 1000) / 10}%`, height: '100%' })
  return html`<svg class="share" aria-hidden="true"><rect rx="4" ${size} /></svg>`
}

export const count = (n: number): string => n.toLocaleString('en')

export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${count(n)} ${n === 1 ? one : many}`

/** A command that tries a new key. Only for the response that shows the key. */
export const firstRequest = (baseUrl: string, key: string, scope: KeyScope = 'write'): Html => html`
  <h3 id="command-label">Try it in a terminal</h3>
  <pre id="command" tabindex="0"
    aria-labelledby="command-label"><code>${commandOf(baseUrl, key, scope)}</code></pre>
  <p>${copyButton('command', 'the command')}</p>`

/** `key` has only letters, digits and `_`, and `baseUrl` is a URL without quotes. */
function commandOf(baseUrl: string, key: string, scope: KeyScope): string {
  if (scope === 'read') return `curl ${baseUrl}/api/list -H 'X-API-Key: ${key}'`
  return [
    `curl ${baseUrl}/api/shorten \\`,
    `  -H 'X-API-Key: ${key}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"url":"https://example.com/"}'`,
  ].join('\n')
}
