import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html, type Value } from '../../lib/html.ts'
import type { Visitor } from '../auth/guard.ts'

/** Parts of pages. All text that goes in is escaped. */

interface FormOptions {
  action: string
  /** Of the visitor, or of a page for strangers. */
  csrf: string
  children: Value
  /** Attributes beside, like `hx-post` or `enctype`. */
  extra?: Readonly<Record<string, string | boolean>>
}

/** A form that is sent with its token. */
export const form = ({ action, csrf, children, extra = {} }: FormOptions): Html => html`
  <form method="post" ${attributes({ action, class: 'form', ...extra })}>
    <input type="hidden" name="csrf" value="${csrf}">
    ${children}
  </form>`

interface FieldOptions {
  name: string
  label: string
  /** Of an `<input>`; `textarea` makes one of several lines. */
  type?:
    | 'text'
    | 'email'
    | 'password'
    | 'search'
    | 'number'
    | 'file'
    | 'datetime-local'
    | 'textarea'
  value?: string | undefined
  hint?: Value
  /** What is wrong with the value; shown beside the field and read out with it. */
  error?: string | undefined
  required?: boolean
  autocomplete?: string
  /** Attributes beside, like `maxlength`, `autofocus` or `inputmode`. */
  extra?: Readonly<Record<string, string | number | boolean>>
}

/** The longest value that comes back in a page with an error: as long as a destination may be. */
const VALUE_LENGTH_MAX = 8192
const EMAIL_LENGTH_MAX = 254

/**
 * A labelled field with its hint and its error. A password is never put back into a page, nor is a
 * value that is too long for its field: cut, it would be another one.
 */
export function field(options: FieldOptions): Html {
  const { name, label, type = 'text', value = '', hint, error, required = false } = options
  const id = `field-${name}`
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  const common = {
    ...{ id, name, required },
    autocomplete: options.autocomplete,
    'aria-invalid': error ? 'true' : undefined,
    'aria-describedby': describedBy || undefined,
    ...options.extra,
  }
  const usualMax = type === 'email' ? EMAIL_LENGTH_MAX : VALUE_LENGTH_MAX
  const isTooLong = value.length > Number(options.extra?.maxlength ?? usualMax)
  const shown = type === 'password' || type === 'file' || isTooLong ? undefined : value
  return html`
    <div class="field">
      <label for="${id}">${label}</label>
      ${hint ? html`<p class="hint" id="${`${id}-hint`}">${hint}</p>` : ''}
      ${
        type === 'textarea'
          ? html`<textarea ${attributes(common)}>
${value}</textarea>`
          : html`<input ${attributes({ ...common, type, value: shown })}>`
      }
      ${error ? html`<p class="error" id="${`${id}-error`}">${error}</p>` : ''}
    </div>`
}

interface SelectOptions {
  name: string
  label: string
  choices: readonly { value: string; label: string }[]
  value?: string
  error?: string | undefined
}

export function select({ name, label, choices, value, error }: SelectOptions): Html {
  const id = `field-${name}`
  const all = attributes({
    ...{ id, name },
    'aria-invalid': error ? 'true' : undefined,
    'aria-describedby': error ? `${id}-error` : undefined,
  })
  const options = choices.map((choice) => {
    const chosen = attributes({ value: choice.value, selected: choice.value === value })
    return html`<option ${chosen}>${choice.label}</option>`
  })
  return html`
    <div class="field">
      <label for="${id}">${label}</label>
      <select ${all}>${options}</select>
      ${error ? html`<p class="error" id="${`${id}-error`}">${error}</p>` : ''}
    </div>`
}

/** A box to tick, sent as `1`. */
export const checkbox = ({ name, label }: { name: string; label: string }): Html => html`
  <p class="check"><label>
    <input type="checkbox" ${attributes({ name, value: '1' })}> ${label}
  </label></p>`

type Look = 'primary' | 'plain' | 'danger'

/** Sends the form around it. */
export function button(label: string, look: Look = 'primary', extra: Extra = {}): Html {
  const all = attributes({ type: 'submit', class: `button ${look}`, ...extra })
  return html`<button ${all}>${label}</button>`
}

/** Looks like a button and leads to a page. */
export const linkButton = (label: string, href: string, look: Look = 'plain'): Html =>
  html`<a class="${`button ${look}`}" href="${href}">${label}</a>`

type Extra = Readonly<Record<string, string | boolean>>

interface SmallFormOptions {
  action: string
  label: string
  look?: Look
  /** Hidden fields. */
  values?: Readonly<Record<string, string | number>>
  /** Says more than the label, for who cannot see what stands around it. */
  title?: string
}

/** One button that changes something: a form of its own, so that it works without a script. */
export const buttonForm = ({ csrf }: Pick<Visitor, 'csrf'>, options: SmallFormOptions): Html => {
  const { action, label, look = 'plain', values = {}, title } = options
  const hidden = Object.entries(values).map(
    ([name, value]) => html`<input type="hidden" ${attributes({ name, value })}>`,
  )
  const extra = title === undefined ? {} : { 'aria-label': title }
  return form({
    ...{ action, csrf, extra: { class: 'inline' } },
    children: html`${hidden}${button(label, look, extra)}`,
  })
}

/** An epoch time: UTC from the server, the visitor's own zone where the script runs. */
export function time(epochMs: number): Html {
  const iso = isoTime(epochMs)
  const shown = `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`
  return html`<time datetime="${iso}">${shown}</time>`
}

/** How long until an epoch time; counts down where the script runs. */
export function countdown(endsAt: number, now: number): Html {
  const minutes = Math.max(0, Math.ceil((endsAt - now) / 60_000))
  const hours = Math.floor(minutes / 60)
  const short = hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`
  const shown = hours >= 48 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : short
  const all = attributes({ datetime: isoTime(endsAt), 'data-countdown': true })
  return html`<time ${all}>${shown}</time>`
}

/** A secret in the one answer that shows it, with a button that copies it. */
export const shownOnce = (label: string, secret: string): Html => html`
  <div class="secret">
    <label for="secret">${label}</label>
    <div class="copy">
      <input id="secret" class="code" readonly ${attributes({ value: secret, size: secret.length })}
        autocomplete="off" spellcheck="false" aria-describedby="secret-hint">
      ${copyButton('secret', label)}
    </div>
    <p class="hint" id="secret-hint">It is shown this once. Copy it now and keep it safe.</p>
  </div>`

/** Copies what the field with this id holds. Without a script there is none. */
export function copyButton(id: string, what: string): Html {
  const all = attributes({
    ...{ type: 'button', class: 'button plain', hidden: true },
    ...{ 'data-copy': id, 'aria-label': `Copy ${what}` },
  })
  return html`<button ${all}>Copy</button>`
}

/** Something that happened (`good`), matters (`note`) or went wrong (`bad`). */
export function notice(kind: 'good' | 'note' | 'bad', children: Value): Html {
  const all = attributes({ class: `notice ${kind}`, role: kind === 'bad' ? 'alert' : 'status' })
  return html`<div ${all}>${children}</div>`
}

/** Where a list would stand: what it is for, and what to do first. */
export const emptyState = (title: string, children: Value): Html =>
  html`<div class="empty"><h2>${title}</h2>${children}</div>`

export const card = (title: string, children: Value): Html =>
  html`<section class="card"><h2>${title}</h2>${children}</section>`

interface TableOptions {
  caption: string
  columns: readonly { label: string; isNumber?: boolean; isHidden?: boolean }[]
  /** One value a column. */
  rows: readonly (readonly Value[])[]
}

/** A table that becomes a list of cards where the screen is narrow. */
export function table({ caption, columns, rows }: TableOptions): Html {
  const classOf = (isNumber?: boolean) => (isNumber ? 'number' : undefined)
  const heads = columns.map(({ label, isNumber, isHidden }) => {
    const shown = isHidden ? html`<span class="visually-hidden">${label}</span>` : label
    return html`<th scope="col" ${attributes({ class: classOf(isNumber) })}>${shown}</th>`
  })
  const cells = (row: readonly Value[]) =>
    row.map((value, i) => {
      const { label, isNumber, isHidden } = columns[i] ?? { label: '' }
      const all = { class: classOf(isNumber), 'data-label': isHidden ? undefined : label }
      return html`<td ${attributes(all)}>${value === '' ? '' : html`<div>${value}</div>`}</td>`
    })
  return html`
    <table class="table">
      <caption class="visually-hidden">${caption}</caption>
      <thead><tr>${heads}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${cells(row)}</tr>`)}</tbody>
    </table>`
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`
