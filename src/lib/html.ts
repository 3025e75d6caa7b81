import { assert } from './assert.ts'

/** Markup of our own making, or text that has been escaped. */
export class Html {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** What may stand in a template; null, undefined, true and false show nothing. */
export type Value = Html | string | number | boolean | null | undefined | readonly Value[]

type Hole =
  | { kind: 'text' }
  | { kind: 'tag' }
  | { kind: 'attribute'; name: string; starts: boolean }

/** Attributes whose value is an address: only those that cannot run go in. */
const ADDRESSES = /^(href|src|action|formaction|poster|cite|hx-(get|post|put|patch|delete))$/
const SAFE_ADDRESS = /^(https?:\/\/|mailto:|[/?#]|$)/i
/** Attributes whose value is a program or a style sheet: nothing goes in. */
const PROGRAMS = /^(on.*|hx-on.*|hx-vals|hx-vars|style|srcdoc)$/

const holesOf = new WeakMap<TemplateStringsArray, readonly Hole[]>()

/**
 * Markup with values in it. Every value is escaped for where it stands; only `Html` goes into text
 * as it is. Attribute values stand in double quotes. Whole attributes come from `attributes`.
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
 * The attributes of a tag: `html\`<input ${attributes({ name, required: true })}>\``. One that is
 * false, null or undefined is left out.
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
  if (hole.starts && ADDRESSES.test(hole.name) && !SAFE_ADDRESS.test(text)) return '#'
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
 * Characters that show as nothing or turn the text around them: controls, line separators, and what
 * Unicode calls default ignorable (UAX #44), marks of the bidirectional algorithm among them. Not
 * joiners and variation selectors, which belong to words of some languages and to emoji.
 */
const UNSEEN =
  /[[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029]--[\u200c\u200d\ufe00-\ufe0f]]/gv

/** Printable ASCII but for what `ENTITIES` has. */
const PLAIN = /^[ !#-%(-;=?-~]*$/

/** Text as markup that shows it. What cannot be seen is shown percent-encoded, as in a URL. */
function escapeText(text: string): string {
  // Most texts are: a page has thousands, and the search for what is unseen is the slow part.
  if (PLAIN.test(text)) return text
  return text
    .replace(/[&<>"']/g, (found) => ENTITIES[found] as string)
    .replace(UNSEEN, (found) => (/[\t\n\r]/.test(found) ? found : encodeURIComponent(found)))
}

/** Reads a template once: where each of its values stands. Throws where none may. */
function findHoles(strings: TemplateStringsArray): Hole[] {
  let state: Hole = { kind: 'text' }
  const holes: Hole[] = []
  for (const [i, string] of strings.entries()) {
    state = read(string, state)
    if (i === strings.length - 1) break
    if (state.kind === 'tag') {
      assert(!/=\s*$/.test(string), 'the value of an attribute stands in double quotes')
    }
    holes.push(state)
    if (state.kind === 'attribute') state = { ...state, starts: false }
  }
  assert(state.kind === 'text', 'a template ends outside of every tag')
  return holes
}

/** The state behind a piece of a template. */
function read(string: string, from: Hole): Hole {
  let state = from
  for (let i = 0; i < string.length; i++) {
    const character = string[i]
    if (state.kind === 'text') {
      if (character === '<' && /[a-z/!]/i.test(string[i + 1] ?? '')) state = { kind: 'tag' }
    } else if (state.kind === 'tag') {
      assert(character !== "'", 'the value of an attribute stands in double quotes')
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
