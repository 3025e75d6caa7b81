import type { AppError } from '../../errors.ts'
import { isTimeZone } from '../../hits/range.ts'
import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import {
  type Kind,
  type LinkProperties,
  MAX_HITS_MAX,
  type PropertiesChange,
  SETTABLE_PROPERTIES,
  type SettableName,
  type SettableProperty,
  TAG_MAX,
  TAGS_MAX,
} from '../../links/property-table.ts'
import { BAD_FORWARDING, BAD_TIMES, PropertiesBody } from '../../links/schema.ts'
import { URL_MAX_LENGTH, withScheme } from '../../links/url.ts'
import type { PageContext } from '../auth/guard.ts'
import { FormRefusal, refuseAt, wordingOf } from '../responses.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { zoneName } from '../ui/hit-chart.ts'
import { offeredTags } from '../ui/link-table.ts'
import { localText, parseLocal } from '../ui/local-time.ts'

/** The properties of a link as fields of a form. */

type Name = SettableName

/** Destinations by rule have a form of their own. */
const FIELDS = SETTABLE_PROPERTIES.filter(
  ({ kind }) => kind !== 'destinations' && kind !== 'domain',
)
type Texts = Readonly<Record<Name, string>>
type Errors = Partial<Record<Name, string>>

const LENGTH_USUAL = 40

/** Maximum UTF-16 units of a text in the form, of which a character may have two. */
function lengthMax({ kind, max }: SettableProperty): number | undefined {
  if (kind === 'tags') return TAGS_MAX * (2 * TAG_MAX + 2)
  if (kind === 'url') return URL_MAX_LENGTH
  return max && 2 * max
}

/** The time zone of the form, or that of the account if it names none. */
function zoneIn(context: PageContext): string {
  const named = context.form.text('zone')
  return isTimeZone(named) ? named : context.user.zone
}

/** The fields that differ from those of the page that the form came from, as JSON of the API. */
export function readChanges(context: PageContext) {
  const { form } = context
  const zone = zoneIn(context)
  const body: Partial<Record<Name, unknown>> = {}
  const errors: Errors = {}
  for (const property of FIELDS.filter(({ name }) => isChanged(form, name))) {
    const { name } = property
    const value = fieldValue(property, form.text(name), zone)
    const problem = PropertiesBody.safeParse({ [name]: value }).error?.issues[0]?.message
    if (problem) errors[name] = messageOf(property, problem, zone)
    else body[name] = value
  }
  return { body, errors }
}

/** Another tab may have changed the other fields meanwhile. */
export function isChanged(form: Form, name: string): boolean {
  const [before] = form.all(`was_${name}`)
  return before === undefined ? form.has(name) : fingerprint(form.text(name)) !== before
}

/** A hash, so that the form has a long note once. Browsers send line breaks as CR LF. */
export const fingerprint = (text: string): string =>
  Bun.hash(text.trim().replace(/\r\n?/g, '\n')).toString(36)

/** Undefined for a text that is too long for its field: cut, it would be a different one. */
function sentText(form: Form, property: SettableProperty, prefix = ''): string | undefined {
  const text = form.text(prefix + property.name)
  return text.length <= (lengthMax(property) ?? LENGTH_USUAL) ? text : undefined
}

/** Null clears a property. */
function fieldValue({ kind }: SettableProperty, text: string, zone: string): unknown {
  if (kind === 'flag') return text === '1'
  if (kind === 'forwarding') return text === '1' ? 'append' : 'off'
  if (text === '') return null
  switch (kind) {
    case 'tags':
      return text.split(',').filter((tag) => tag.trim() !== '')
    case 'text':
      return text.replace(/\r\n?/g, '\n')
    case 'time': {
      const time = parseLocal(text, zone)
      return time === undefined ? '' : isoTime(time)
    }
    case 'count':
      return /^\d+$/.test(text) ? Number(text) : Number.NaN
    case 'url':
      return withScheme(text)
    default:
      return text
  }
}

/** The API's messages name fields by their JSON names. */
function messageOf({ kind }: SettableProperty, problem: string, zone: string): string {
  if (kind === 'count') return `Enter a whole number from 1 to ${parts.count(MAX_HITS_MAX)}.`
  if (kind === 'url') return problem.replace('Invalid expired_url', 'Invalid URL')
  return kind === 'time' ? `Enter a date and a time that exists in ${zoneName(zone)}.` : problem
}

const NO_FRAGMENT = 'A destination with # cannot get the path behind the address.'
export const BAD_ORDER = 'The link must expire after it starts.'

/** Where a change of properties that was refused has its mistake. Undefined: nowhere alone. */
export function refusedField(error: AppError, change: PropertiesChange): FormRefusal | undefined {
  if (/^(url_blocked|own_host)$/.test(error.code)) return refuseAt('expired_url', wordingOf(error))
  if (error.message === BAD_FORWARDING) return refuseAt('url', NO_FRAGMENT)
  if (error.message !== BAD_TIMES) return undefined
  return refuseAt(change.expires_at === undefined ? 'starts_at' : 'expires_at', BAD_ORDER)
}

interface PropertyFields {
  field: (name: Name) => Html
  /** When the link works, and for how many visits. */
  rules: Html
}

/** The fields with what is stored or was sent. `focus`: the name of the one to begin with. */
export function propertyFields(
  context: PageContext,
  properties: LinkProperties,
  focus: string | undefined,
): PropertyFields {
  const { form, refusal } = context
  const isRefused = refusal && FIELDS.some(({ name }) => form.has(name))
  const zone = zoneIn(context)
  const stored = storedTexts(properties, zone)
  const errors: Errors = refusal instanceof FormRefusal ? refusal.errors : {}
  const texts = textOfEach((property) => {
    const { name } = property
    if (!isRefused) return stored[name]
    // For an accepted text that is longer when it is shown, the stored one.
    return sentText(form, property) ?? (errors[name] ? '' : stored[name])
  })
  const before = FIELDS.map((property) => [
    `was_${property.name}`,
    isRefused ? (sentText(form, property, 'was_') ?? '') : fingerprint(stored[property.name]),
  ])
  const fieldOf = (property: SettableProperty) => textField(texts, errors, property, focus)
  const flags = RULES.filter(({ kind }) => isSwitch(kind))
  const others = RULES.filter(({ kind }) => !isSwitch(kind))
  return {
    field: (name) => html`${FIELDS.filter((one) => one.name === name).map(fieldOf)}`,
    rules: html`
      ${parts.hiddenFields({ ...Object.fromEntries(before), zone })}
      <div class="columns small">${others.map(fieldOf)}</div>
      <p class="hint">Times in ${zoneName(zone)}.
        <a href="/app/account">Change the time zone</a></p>
      ${flags.map(({ name, label }) =>
        parts.checkbox({ name, label, isChecked: texts[name] === '1' }),
      )}`,
  }
}

/** Completes the tags in a field `tags`. */
export const tagOptions = async ({ deps, user }: PageContext): Promise<Html> =>
  html`<datalist id="tags">${(await offeredTags(deps, user.account)).map(
    (tag) => html`<option value="${tag}"></option>`,
  )}</datalist>`

/** The properties that one sets most often, in the form that creates a link. */
const OF_NEW_LINKS = ['title', 'tags', 'starts_at', 'expires_at', 'max_hits'] as const
const NEW = FIELDS.filter(({ name }) => OF_NEW_LINKS.some((one) => one === name))

/** Properties of a new link that are set. Throws `FormRefusal` for bad fields. */
export function readNewProperties(context: PageContext): PropertiesChange {
  const { body, errors } = readChanges(context)
  const set = Object.entries(PropertiesBody.parse(body)).filter(([name, value]) => {
    const isEmpty = value === null || (Array.isArray(value) && value.length === 0)
    return !isEmpty && OF_NEW_LINKS.some((one) => one === name)
  })
  if (Object.keys(errors).length > 0) throw new FormRefusal(errors)
  return Object.fromEntries(set)
}

/** Open if one of them is refused. The browser opens and closes it, also without scripts. */
export function newPropertyFields(
  context: PageContext,
  isRefused: boolean,
): { markup: Html; hasError: boolean } {
  const { form, refusal, query } = context
  const zone = zoneIn(context)
  const errors: Errors = isRefused && refusal instanceof FormRefusal ? refusal.errors : {}
  const texts = textOfEach((property) => {
    if (isRefused) return sentText(form, property) ?? ''
    // Other apps share a page with its title.
    if (property.name !== 'title') return ''
    return [...(query.title ?? '').trim()].slice(0, property.max).join('')
  })
  const hasError = NEW.some(({ name }) => errors[name])
  const isOpen = NEW.some(({ name }) => texts[name] !== '')
  const focus = NEW.find(({ name }) => errors[name])?.name
  const markup = html`<details ${attributes({ class: 'more-fields', open: hasError || isOpen })}>
    <summary>More: title, tags, dates</summary>
    ${parts.hiddenFields({ zone })}
    <div class="columns small">${NEW.map((property) =>
      textField(texts, errors, property, focus),
    )}</div>
    <p class="hint">Times in ${zoneName(zone)}.</p>
  </details>`
  return { markup, hasError }
}

const textOfEach = (textOf: (property: SettableProperty) => string): Texts =>
  Object.fromEntries(FIELDS.map((one) => [one.name, textOf(one)])) as Texts

const storedTexts = (properties: LinkProperties, zone: string): Texts =>
  textOfEach(({ name, kind }) => {
    const value = properties[name]
    if (value === null || value === false) return ''
    if (kind === 'time') return localText(value as number, zone)
    if (isSwitch(kind)) return '1'
    return visible(Array.isArray(value) ? value.join(', ') : String(value))
  })

const RULES = FIELDS.filter(({ isRule }) => isRule)

/** Shown as a checkbox. */
const isSwitch = (kind: Kind): boolean => kind === 'flag' || kind === 'forwarding'

type Attributes = Readonly<Record<string, string | number | boolean>>

/** The control of each kind, apart from that of a flag. */
const CONTROLS: Partial<Record<Kind, { type: ControlType; extra?: Attributes }>> = {
  tags: { type: 'text', extra: { list: 'tags', 'data-tags': true } },
  text: { type: 'textarea', extra: { rows: 1 } },
  time: { type: 'datetime-local' },
  count: { type: 'number', extra: { min: 1, max: MAX_HITS_MAX, step: 1 } },
  url: { type: 'text', extra: { placeholder: 'https://', inputmode: 'url' } },
}
type ControlType = 'text' | 'number' | 'datetime-local' | 'textarea'

function textField(
  texts: Texts,
  errors: Errors,
  property: SettableProperty,
  focus: string | undefined,
): Html {
  const { name, label, kind } = property
  const { type = 'text', extra } = CONTROLS[kind] ?? {}
  // Invisible characters are longer when they are shown.
  const most = lengthMax(property)
  const maxlength = most && Math.max(most, texts[name].length)
  return parts.field({
    name,
    label,
    type,
    value: texts[name],
    error: errors[name],
    autocomplete: 'off',
    extra: {
      ...(maxlength && { maxlength, spellcheck: type === 'textarea' ? 'true' : 'false' }),
      // htmx focuses it in a part of a page.
      autofocus: name === focus,
      ...extra,
    },
  })
}
