import { attributes, type Html, html, visible } from '../../lib/html.ts'
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
import { longTime } from './local-time.ts'

/** Conditions of destinations in words. */

const LANGUAGES = new Intl.DisplayNames('en', { type: 'language' })
const DAY_NAMES = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
/** Countries of a condition that are named. */
const COUNTRIES_SHOWN = 6

export const choicesOf = {
  os: SYSTEMS.map((value) => ({ value, label: nameOf('os', value) })),
  device: DEVICES.map((value) => ({ value, label: nameOf('device', value) })),
  days: DAYS.map((value, at) => ({ value, label: DAY_NAMES[at] ?? value })),
}

const labelOf = (name: keyof typeof choicesOf, value: string): string =>
  choicesOf[name].find((choice) => choice.value === value)?.label ?? value

const either = (names: readonly string[]): string => names.join(' or ')

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
    words: ({ device = [] }) => either(device.map((value) => labelOf('device', value))),
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
    words: ({ query = {} }) => visible(queryText(query).replaceAll(', ', ' and ')),
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
      [days.map((day) => labelOf('days', day)).join(', '), hours?.replace('-', '–'), `(${zone})`]
        .filter(Boolean)
        .join(' '),
  },
]

const isSet = (when: Conditions, names: readonly (keyof Conditions)[]): boolean =>
  names.some((name) => when[name] !== undefined)

/** Each condition on a line. `zone`: of the times that have none. */
export const conditionList = (when: Conditions, zone: string): Html =>
  html`<ul class="plain-list">${PARTS.filter(({ names }) => isSet(when, names)).map(
    ({ words }) => html`<li>${words(when, zone)}</li>`,
  )}</ul>`

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

/** A group of checkboxes for a list of values. */
export function checkboxes(props: {
  name: string
  legend: string
  choices: readonly { value: string; label: string }[]
  chosen: readonly string[]
  error: string | undefined
}): Html {
  const { name, legend, choices, chosen, error } = props
  return html`<fieldset>
    <legend>${legend}</legend>
    <div class="row">${choices.map(({ value, label }) => {
      const all = attributes({ name, value, checked: chosen.includes(value) })
      return html`<label><input type="checkbox" ${all}> ${label}</label>`
    })}</div>
    ${error && html`<p class="error">${error}</p>`}
  </fieldset>`
}
