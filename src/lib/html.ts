import { assert } from './assert.ts'

/** Safe markup: from a template, or escaped text. */
export class Html {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** A value in a template; null, undefined, true and false produce nothing. */
export type Value = Html | string | number | boolean | null | undefined | readonly Value[]

type Hole =
  | { kind: 'text' }
  | { kind: 'tag' }
  | { kind: 'attribute'; name: string; starts: boolean }

/** Attributes whose value is a URL: only schemes that cannot run code are accepted. */
const URL_ATTRIBUTES = /^(href|src|action|formaction|poster|cite|hx-(get|post|put|patch|delete))$/
const SAFE_URL = /^(https?:\/\/|mailto:|[/?#]|$)/i
/** Attributes whose value is code or style: no value is accepted. */
const PROGRAMS = /^(on.*|hx-on.*|hx-vals|hx-vars|style|srcdoc)$/

const holesOf = new WeakMap<TemplateStringsArray, readonly Hole[]>()

/**
 * Markup with values. Each value is escaped for its position; only `Html` is inserted into text
 * unchanged. Attribute values must be in double quotes. Whole attributes come from `attributes`.
 * Throws if the template itself is unsafe.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  let holes = holesOf.get(strings)
  if (!holes) {
    holes = findHoles(strings)
    holesOf.set(strings, holes)
  }
  let text = strings[0] ?? ''
  for (const [i, value] of values.entries()) {
    text += fill(holes[i] as Hole, value) + strings[i + 1]
  }
  return new Html(text)
}

/**
 * Attributes of a tag: `html\`<input ${attributes({ name, required: true })}>\``. Omits those that
 * are false, null or undefined.
 */
export function attributes(
  all: Readonly<Record<string, string | number | boolean | null | undefined>>,
): Html {
  const shown = Object.entries(all).flatMap(([name, value]) => {
    assert(/^[a-z][a-z0-9-]*$/.test(name), `${name} is no name of an attribute`)
    if (value === false || value === null || value === undefined) return []
    if (value === true) return [name]
    return [`${name}="${fill({ kind: 'attribute', name, starts: true }, value)}"`]
  })
  return new Html(shown.join(' '))
}

function fill(hole: Hole, value: Value): string {
  if (value === null || value === undefined || typeof value === 'boolean') return ''
  if (Array.isArray(value)) return value.map((one) => fill(hole, one)).join('')
  if (hole.kind === 'text')
    return value instanceof Html ? value.toString() : escapeText(String(value))
  if (hole.kind === 'tag') {
    assert(value instanceof Html, 'whole attributes come from attributes()')
    return value.toString()
  }
  assert(!(value instanceof Html), 'the value of an attribute is text')
  assert(!PROGRAMS.test(hole.name), `nothing goes into ${hole.name}`)
  const text = String(value)
  if (hole.starts && URL_ATTRIBUTES.test(hole.name) && !SAFE_URL.test(text)) return '#'
  return escapeText(text)
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Characters that are invisible or change the direction of text: controls, line separators, and
 * Unicode's default ignorable characters (UAX #44), which include bidirectional controls. Without
 * joiners and variation selectors, which are part of words in some languages and of emoji.
 */
const UNSEEN =
  /[[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029]--[\u200c\u200d\ufe00-\ufe0f]]/gv

/** Printable ASCII, except for the characters of `ENTITIES`. */
const PLAIN = /^[ !#-%(-;=?-~]*$/

/** Text as markup. Invisible characters become visible, percent-encoded as in a URL. */
function escapeText(text: string): string {
  // A page has thousands of texts, most of them plain; the search for UNSEEN is slow.
  if (PLAIN.test(text)) return text
  return visible(text).replace(/[&<>"']/g, (found) => ENTITIES[found] as string)
}

/** Invisible characters percent-encoded, as a page shows them; tabs and line breaks stay. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (found) => (/[\t\n\r]/.test(found) ? found : encodeURIComponent(found)))

/** Parses a template: the position of each value. Throws if a position is not allowed. */
function findHoles(strings: TemplateStringsArray): Hole[] {
  let state: Hole = { kind: 'text' }
  const holes: Hole[] = []
  for (const [i, string] of strings.entries()) {
    state = read(string, state)
    if (i === strings.length - 1) break
    if (state.kind === 'tag') {
      assert(!/=\s*$/.test(string), 'the value of an attribute is in double quotes')
    }
    holes.push(state)
    if (state.kind === 'attribute') state = { ...state, starts: false }
  }
  assert(state.kind === 'text', 'a template ends outside of every tag')
  return holes
}

/** The state after a part of a template. */
function read(string: string, from: Hole): Hole {
  let state = from
  for (let i = 0; i < string.length; i++) {
    const character = string[i]
    if (state.kind === 'text') {
      if (character === '<' && /[a-z/!]/i.test(string[i + 1] ?? '')) state = { kind: 'tag' }
    } else if (state.kind === 'tag') {
      assert(character !== "'", 'the value of an attribute is in double quotes')
      if (character === '>') state = { kind: 'text' }
      if (character === '"') {
        const name = /([a-z][a-z0-9-]*)=$/i.exec(string.slice(0, i))?.[1]
        assert(name !== undefined, 'a quote follows the name of an attribute')
        state = { kind: 'attribute', name: name.toLowerCase(), starts: true }
      }
    } else if (character === '"') {
      state = { kind: 'tag' }
    } else {
      state = { ...state, starts: false }
    }
  }
  return state
}
