import { attributes, type Html, html, type Value, visible } from '../../lib/html.ts'
import {
  type Conditions,
  compileConditions,
  DAYS,
  DEVICES,
  matches,
  SYSTEMS,
  type Visitor,
} from '../../links/destination-rules.ts'
import { nameOf } from '../../visits/names.ts'
import { NUMBERED } from '../../visits/values.ts'
import type { Form } from './form.ts'
import { icon } from './icons.ts'
import { longTime } from './local-time.ts'

/** Conditions of destinations: in words, and as the lines of a form. */

const LANGUAGES = new Intl.DisplayNames('en', { type: 'language' })

type Named = 'language' | 'region'

/** Codes of two letters by their English names in small letters. */
function codesByName(type: Named): ReadonlyMap<string, string> {
  const names = new Intl.DisplayNames('en', { type, fallback: 'none' })
  // A former code has the name of the one that replaces it.
  const current = (code: string) =>
    type === 'language'
      ? Intl.getCanonicalLocales(code)[0]
      : new Intl.Locale(`und-${code}`).maximize().region
  const found = NUMBERED.country.flatMap((code) => {
    const name = /^[A-Z]{2}$/.test(code) && names.of(code)
    return name ? [[name.toLowerCase(), current(code) ?? code] as const] : []
  })
  return new Map(found)
}

const codes = new Map<Named, ReadonlyMap<string, string>>()

/** The codes in a text of codes and names: `German, pt-BR`. Other words stay as they are. */
export function typedCodes(text: string, type: Named): string[] {
  const byName = codes.getOrInsertComputed(type, codesByName)
  const codeOf = (part: string) => byName.get(part.trim().toLowerCase())
  return text
    .split(/[,;]/)
    .flatMap((part) => {
      const whole = codeOf(part)
      return whole ? [whole] : part.split(/\s+/).map((word) => codeOf(word) ?? word)
    })
    .filter(Boolean)
}
const DAY_NAMES = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
/** Countries of a condition that are named. */
const COUNTRIES_SHOWN = 6

/** What people call some systems. */
const SYSTEM_NAMES: Readonly<Record<string, string>> = { ios: 'iPhone or iPad', macos: 'Mac' }

export const choicesOf = {
  os: SYSTEMS.map((value) => ({ value, label: SYSTEM_NAMES[value] ?? nameOf('os', value) })),
  device: DEVICES.map((value) => ({ value, label: nameOf('device', value) })),
  days: DAYS.map((value, at) => ({ value, label: (DAY_NAMES[at] ?? value).slice(0, 3) })),
}

const labelOf = (name: 'os' | 'device', value: string): string =>
  choicesOf[name].find((choice) => choice.value === value)?.label ?? value

const either = (names: readonly string[]): string => names.join(' or ')

/** `Monday to Friday, Sunday`: three or more days in a row are a range. */
function daysText(days: NonNullable<Conditions['days']>): string {
  const runs: number[][] = []
  for (const at of days.map((day) => DAYS.indexOf(day))) {
    const run = runs.at(-1)
    if (run?.at(-1) === at - 1) run.push(at)
    else runs.push([at])
  }
  return runs
    .flatMap((run) => {
      const names = run.map((at) => DAY_NAMES[at])
      return names.length > 2 ? [`${names[0]} to ${names.at(-1)}`] : names
    })
    .join(', ')
}

/** Conditions that hold or fail together, with their names and their words. */
const PARTS: readonly {
  label: string
  names: readonly (keyof Conditions)[]
  words: (when: Conditions, zone: string) => string
}[] = [
  {
    label: 'system',
    names: ['os'],
    words: ({ os = [] }) => either(os.map((value) => labelOf('os', value))),
  },
  {
    label: 'device',
    names: ['device'],
    words: ({ device = [] }) =>
      either(device.map((value) => labelOf('device', value).toLowerCase())),
  },
  {
    label: 'language',
    names: ['language'],
    words: ({ language = [] }) =>
      either(language.map((tag) => `${LANGUAGES.of(tag) ?? tag} (${tag})`)),
  },
  {
    label: 'country',
    names: ['country'],
    words({ country = [] }) {
      const shown = country.slice(0, COUNTRIES_SHOWN).map((code) => nameOf('country', code))
      const rest = country.length - shown.length
      return either(rest > 0 ? [...shown, `${rest} other countries`] : shown)
    },
  },
  {
    label: 'query',
    names: ['query'],
    words: ({ query = {} }) => visible(`?${queryText(query).replaceAll(', ', ' and ')}`),
  },
  {
    label: 'start',
    names: ['from'],
    words: ({ from = '' }, zone) => `from ${longTime(Date.parse(from), zone)}`,
  },
  {
    label: 'end',
    names: ['until'],
    words: ({ until = '' }, zone) => `until ${longTime(Date.parse(until), zone)}`,
  },
  {
    label: 'day and hour',
    names: ['days', 'hours', 'zone'],
    words: ({ days = [], hours, zone }) =>
      [daysText(days), hours?.replace('-', '–'), `(${zone})`].filter(Boolean).join(' '),
  },
]

const isSet = (when: Conditions, names: readonly (keyof Conditions)[]): boolean =>
  names.some((name) => when[name] !== undefined)

/** `If [iPhone or iPad] and [German (de)]`. `zone`: of the times that have none. */
export const conditionText = (when: Conditions, zone: string): Html =>
  html`If ${PARTS.filter(({ names }) => isSet(when, names)).map(
    ({ words }, i) => html`${i > 0 && ' and '}<b class="tag">${words(when, zone)}</b>`,
  )}`

/** Conditions that have a line of the form together. */
export const LINES = {
  os: { label: 'System', names: ['os'] },
  device: { label: 'Device', names: ['device'] },
  language: { label: 'Language', names: ['language'] },
  country: { label: 'Country', names: ['country'] },
  query: { label: 'Query', names: ['query'] },
  dates: { label: 'Dates', names: ['from', 'until'] },
  week: { label: 'Days and hours', names: ['days', 'hours', 'zone'] },
} as const satisfies Record<string, { label: string; names: readonly (keyof Conditions)[] }>

export type Line = keyof typeof LINES
const ALL_LINES = Object.keys(LINES) as Line[]

export const linesOf = (when: Conditions): Line[] =>
  ALL_LINES.filter((line) => isSet(when, LINES[line].names))

/** The lines that a sent form shows. The fields of the others are sent, too, and do not count. */
export const usedLines = (form: Form): Line[] =>
  ALL_LINES.filter((line) => !form.has('use') || form.all('use').includes(line))

/** Opens the menu of `lineMenu`. */
export const lineMenuButton = (): Html => html`
  <button type="button" class="button plain" popovertarget="condition-menu">Add a condition
    ${icon('chevron-down')}</button>`

/**
 * Chooses the lines of the form around it: the style sheet hides the others. It stands before the
 * lines, because a browser that lays out half of the page gives no focus to a hidden field.
 */
export const lineMenu = (lines: readonly Line[], used: readonly Line[]): Html => html`
  <div id="condition-menu" class="menu" popover>
    <input type="hidden" name="use" value="">
    ${lines.map((line) => {
      const all = { id: `use-${line}`, name: 'use', value: line, checked: used.includes(line) }
      return html`<label class="menu-item">
        <input type="checkbox" ${attributes(all)}> ${LINES[line].label}</label>`
    })}
  </div>`

/** A line with its controls. Its button needs scripts: the menu removes it, too. */
export const conditionLine = (line: Line, controls: Value): Html => html`
  <div class="line" data-line="${line}" role="group" aria-labelledby="line-${line}">
    <b id="line-${line}">${LINES[line].label}</b>
    <div class="line-fields">${controls}</div>
    <button type="button" class="act" hidden data-needs-script data-drop="use-${line}"
      aria-label="Remove the condition ${LINES[line].label}">${icon('x')}</button>
  </div>`

/** A time of the day in a form: `9`, `9:30` or `930`; other text stays as it is. */
function clockText(text: string): string {
  const [, hour, minute = '00'] = /^(\d{1,2})(?:[:.]?(\d\d))?$/.exec(text) ?? []
  return hour === undefined ? text : `${hour.padStart(2, '0')}:${minute}`
}

/** `09:00-17:00` from two fields. The first one may have both times: `9-17`. */
export function typedHours(first: string, second: string): string | undefined {
  const [from = '', until = second] = first.split(/\s*[-–]\s*/)
  if (from === '' && until === '') return undefined
  return `${clockText(from || '0')}-${clockText(until || '24')}`
}

/** The first condition that does not hold for the visitor; undefined if all hold. */
export function failingPart(when: Conditions, visitor: Visitor): string | undefined {
  const failing = PARTS.filter(({ names }) => isSet(when, names)).find(({ names }) => {
    const part = Object.fromEntries(names.map((name) => [name, when[name]]))
    return !matches(compileConditions(part), visitor)
  })
  return failing?.label
}

/** `v=2, preview`: the value of each parameter, or its name alone, encoded as in an address. */
export const queryText = (query: Readonly<Record<string, string | true>>): string =>
  Object.entries(query)
    .map(([name, value]) => (value === true ? encoded(name) : `${encoded(name)}=${encoded(value)}`))
    .join(', ')

const encoded = (text: string): string => text.replace(/[%&+,=?\s]/g, encodeURIComponent)

/** Reads the text of `queryText`, and the query of an address. Undefined for a name given twice. */
export function parseQueryText(text: string): Record<string, string | true> | undefined {
  const query = text.trim()
  // In an address, a comma is part of a value.
  const parts = query.replace(/^\?/, '').split(/^\?|&/.test(query) ? /&|,\s+/ : ',')
  const entries = parts
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part): [string, string | true] => {
      const [[name, value] = ['', '']] = new URLSearchParams(part.replace(/^\?/, ''))
      return [name, part.includes('=') ? value : true]
    })
  const parameters = Object.fromEntries(entries)
  return Object.keys(parameters).length === entries.length ? parameters : undefined
}

/** Buttons that are pressed or not, one for each value of a list. */
export function toggles(props: {
  name: keyof typeof choicesOf
  chosen: readonly string[]
  error: string | undefined
}): Html {
  const { name, chosen, error } = props
  return html`<div class="toggles">${choicesOf[name].map(({ value, label }) => {
    const all = { name, value, checked: chosen.includes(value), 'aria-invalid': error && 'true' }
    return html`<label class="button"><input type="checkbox" ${attributes(all)}>${label}</label>`
  })}</div>
  ${error && html`<p class="error">${error}</p>`}`
}
