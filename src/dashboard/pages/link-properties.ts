import { AppError } from '../../errors.ts'
import { isTimeZone } from '../../hits/range.ts'
import { isoTime } from '../../lib/clock.ts'
import { attributes, type Html, html, visible } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties } from '../../links/properties.ts'
import {
  type LinkProperties,
  MAX_HITS_MAX,
  NOTE_MAX,
  PropertiesBody,
  TAG_MAX,
  TAGS_MAX,
  TITLE_MAX,
} from '../../links/property-model.ts'
import { URL_MAX_LENGTH, withScheme } from '../../links/url.ts'
import type { CurrentUser } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { zoneName } from '../ui/hit-chart.ts'
import { linkPath, replacesMain } from '../ui/link-parts.ts'
import { localText, parseLocal } from '../ui/local-time.ts'

/** The properties of a link as one form. */

const NAMES = [
  'title',
  'tags',
  'note',
  'paused',
  'starts_at',
  'expires_at',
  'max_hits',
  'expired_url',
  'forward_query',
] as const
type Name = (typeof NAMES)[number]
type Texts = Readonly<Record<Name, string>>
type Errors = Partial<Record<Name, string>>

/** UTF-16 units that are shown again: a character may have two. */
const LENGTHS: Partial<Record<Name, number>> = {
  title: 2 * TITLE_MAX,
  tags: TAGS_MAX * (2 * TAG_MAX + 2),
  note: 2 * NOTE_MAX,
  expired_url: URL_MAX_LENGTH,
}
const LENGTH_USUAL = 40

/** What a sent form contains. */
export interface SentProperties {
  texts: Partial<Texts>
  /** Fingerprints of the texts of the page that the form came from. */
  before: Partial<Texts>
  /** The time zone of that page. */
  zone: string
  /** Only what differs from `before`, as JSON of the API. */
  body: Readonly<Partial<Record<Name, unknown>>>
  errors: Errors
}

/** `zone` applies if the form names none. */
export function readProperties(form: Form, zone: string): SentProperties {
  const named = form.text('zone')
  const sent = { texts: textsOf(form), before: textsOf(form, 'was_') }
  const known = isTimeZone(named) ? named : zone
  const body: Partial<Record<Name, unknown>> = {}
  const errors: Errors = {}
  for (const name of NAMES.filter((name) => isChanged(form, name))) {
    const value = fieldValue(name, form.text(name), known)
    const problem = PropertiesBody.safeParse({ [name]: value }).error?.issues[0]?.message
    if (problem) errors[name] = messageOf(name, problem, known)
    else body[name] = value
  }
  return { ...sent, zone: known, body, errors }
}

/** Another tab may have changed the other fields meanwhile. */
function isChanged(form: Form, name: Name): boolean {
  const [before] = form.all(`was_${name}`)
  return before === undefined ? form.all(name).length > 0 : fingerprint(form.text(name)) !== before
}

/** Short, because a page has a limit of bytes. Browsers send line breaks as CR LF. */
const fingerprint = (text: string): string =>
  Bun.hash(text.trim().replace(/\r\n?/g, '\n')).toString(36)

const isShort = (name: Name, text: string) => text.length <= (LENGTHS[name] ?? LENGTH_USUAL)

/** Without texts that are too long for their field: cut, they would be different ones. */
function textsOf(form: Form, prefix = ''): Partial<Texts> {
  const texts = NAMES.map((name) => [name, form.text(prefix + name)] as const)
  return Object.fromEntries(texts.filter(([name, text]) => isShort(name, text)))
}

/** Null clears a property. */
function fieldValue(name: Name, text: string, zone: string): unknown {
  if (name === 'paused' || name === 'forward_query') return text === '1'
  if (text === '') return name === 'tags' ? [] : null
  switch (name) {
    case 'tags':
      return text.split(',').filter((tag) => tag.trim() !== '')
    case 'note':
      return text.replace(/\r\n?/g, '\n')
    case 'starts_at':
    case 'expires_at': {
      const time = parseLocal(text, zone)
      return time === undefined ? '' : isoTime(time)
    }
    case 'max_hits':
      return /^\d+$/.test(text) ? Number(text) : Number.NaN
    case 'expired_url':
      return withScheme(text)
    default:
      return text
  }
}

/** The API's messages name fields by their JSON names. */
function messageOf(name: Name, problem: string, zone: string): string {
  if (name === 'max_hits') return `Enter a whole number from 1 to ${parts.count(MAX_HITS_MAX)}.`
  if (name !== 'starts_at' && name !== 'expires_at') return problem
  return `Enter a date and a time that exists in ${zoneName(zone)}.`
}

const BAD_ORDER = 'The link must expire after it starts.'

/**
 * Throws `invalid_value`, `url_blocked`, `quota_exceeded`; errors of a field are in `sent.errors`
 * then.
 */
export async function saveProperties(
  deps: DashboardDeps,
  { account }: CurrentUser,
  link: Link,
  { body, errors }: SentProperties,
): Promise<void> {
  const change = PropertiesBody.parse(body)
  const stored = deps.properties.propertiesOf(link.id)
  const { startsAt = stored.startsAt, expiresAt = stored.expiresAt } = change
  if (startsAt !== null && expiresAt !== null && startsAt >= expiresAt) {
    errors[change.expiresAt === undefined ? 'starts_at' : 'expires_at'] ??= BAD_ORDER
  }
  if (Object.keys(errors).length > 0) throw new AppError('invalid_value', 'Nothing was saved.')
  if (Object.keys(body).length === 0) return
  try {
    await changeProperties(deps, account, [link.code], change)
  } catch (error) {
    if (error instanceof AppError && error.code === 'url_blocked') {
      errors.expired_url = error.message
    }
    throw error
  }
}

interface PropertiesFormProps {
  link: Link
  properties: LinkProperties
  /** The account's time zone. */
  zone: string
  /** Suggested tags. */
  tags: readonly string[]
  /** A form that was refused. */
  sent?: SentProperties | undefined
}

export function propertiesForm({ csrf }: CurrentUser, props: PropertiesFormProps): Html {
  const { link, properties, sent } = props
  const zone = sent?.zone ?? props.zone
  const stored = storedTexts(properties, zone)
  const texts = sent ? shownTexts(sent, stored) : stored
  const errors = sent?.errors ?? {}
  const action = `${linkPath(link.code)}/properties`
  const hidden = NAMES.map((name) => {
    return [`was_${name}`, sent ? (sent.before[name] ?? '') : fingerprint(stored[name])]
  })
  return parts.card(
    'Properties',
    parts.form({
      action,
      csrf,
      extra: { id: 'properties', ...replacesMain(action) },
      children: [
        parts.hiddenFields({ ...Object.fromEntries(hidden), zone }),
        aboutFields(texts, errors, props.tags),
        ruleFields(texts, errors, zone),
        parts.button('Save', link.url === null ? 'plain' : 'primary', { id: 'save-properties' }),
      ],
    }),
  )
}

/** The typed texts. For an accepted text that is longer when it is shown, the stored one. */
function shownTexts({ texts, errors }: SentProperties, stored: Texts): Texts {
  const shown = NAMES.map((name) => [name, texts[name] ?? (errors[name] ? '' : stored[name])])
  return Object.fromEntries(shown)
}

function storedTexts(properties: LinkProperties, zone: string): Texts {
  const time = (at: number | null) => (at === null ? '' : localText(at, zone))
  const flag = (isSet: boolean) => (isSet ? '1' : '')
  return {
    title: visible(properties.title ?? ''),
    tags: visible(properties.tags.join(', ')),
    note: visible(properties.note ?? ''),
    paused: flag(properties.isPaused),
    starts_at: time(properties.startsAt),
    expires_at: time(properties.expiresAt),
    max_hits: String(properties.maxHits ?? ''),
    expired_url: visible(properties.expiredUrl ?? ''),
    forward_query: flag(properties.forwardQuery),
  }
}

function aboutFields(texts: Texts, errors: Errors, tags: readonly string[]): Html {
  const text = (props: TextFieldProps) => textField(texts, errors, props)
  const suggested = { list: 'tags', 'data-tags': true }
  const options = tags.map((tag) => html`<option value="${tag}"></option>`)
  return html`
    <div class="about-fields">
      ${text({ name: 'title', label: 'Title' })}
      ${text({ name: 'tags', label: 'Tags, separated by commas', extra: suggested })}
      ${text({ name: 'note', label: 'Note', type: 'textarea', extra: { rows: 1 } })}
      <datalist id="tags">${options}</datalist>
    </div>`
}

const RULES = NAMES.slice(NAMES.indexOf('paused'))

/** Open if a rule is set or refused. */
function ruleFields(texts: Texts, errors: Errors, zone: string): Html {
  const isOpen = RULES.some((name) => texts[name] !== '' || errors[name])
  const time = (name: Name, label: string) =>
    textField(texts, errors, { name, label, type: 'datetime-local' })
  const fields = html`
    <div class="rule-fields">
      ${time('starts_at', 'Starts')}
      ${time('expires_at', 'Expires')}
      ${textField(texts, errors, {
        name: 'max_hits',
        label: 'Maximum hits',
        type: 'number',
        extra: { min: 1, max: MAX_HITS_MAX, step: 1 },
      })}
      ${textField(texts, errors, {
        name: 'expired_url',
        label: 'Destination after expiry',
        extra: { placeholder: 'https://', inputmode: 'url' },
      })}
    </div>
    <p class="hint">Times in ${zoneName(zone)}. <a href="/app/account">Change the time zone</a></p>
    <div class="rule-flags">
      ${parts.checkbox({ name: 'paused', label: 'Paused', isChecked: texts.paused === '1' })}
      ${parts.checkbox({
        name: 'forward_query',
        label: 'Add the query string of each visit to the destination',
        isChecked: texts.forward_query === '1',
      })}
    </div>`
  const all = attributes({ class: 'rules', open: isOpen })
  return html`<details ${all}><summary>Rules</summary>${fields}</details>`
}

interface TextFieldProps {
  name: Name
  label: string
  type?: 'text' | 'number' | 'datetime-local' | 'textarea'
  extra?: Readonly<Record<string, string | number | boolean>>
}

function textField(texts: Texts, errors: Errors, props: TextFieldProps): Html {
  const { name, label, type = 'text', extra } = props
  // Invisible characters are longer when they are shown.
  const maxlength = LENGTHS[name] && Math.max(LENGTHS[name], texts[name].length)
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
      autofocus: NAMES.find((one) => errors[one]) === name,
      ...extra,
    },
  })
}
