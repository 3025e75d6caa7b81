/** Checks of SVG files for logos. They are drawn as pixels and never sent to a client. */

const DEPTH_MAX = 64
/** Clips, masks and copies may refer to each other, so that each one doubles the work. */
const REFERENCES_MAX = 16

/** Local names of elements that load files, run code, or cost memory without a bound. */
const REFUSED: readonly { names: RegExp; problem: string }[] = [
  { names: /^(script|foreignObject)$/i, problem: 'The SVG contains a script or a web page.' },
  { names: /^(image|feImage)$/i, problem: 'The SVG contains another image. Use shapes only.' },
  {
    names: /^(text|tspan|textPath|tref)$/i,
    problem: 'The SVG contains text. Convert the text to paths.',
  },
  {
    names: /^(filter|pattern)$/i,
    problem: 'The SVG contains a filter or a pattern. Export it without shadows and effects.',
  },
]

const OUTSIDE = 'The SVG refers to something outside of it. Remove its links and imports.'
const COMPLEX = 'The SVG is too complex. Flatten its groups, masks and copies.'
const DAMAGED = 'The SVG declares a document type with entities, or is damaged. Export it again.'

/** Quotes may contain `>`. */
const TAG = /<(\/?)([^\s<>"'/!?]+)((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>/g

/** Without comments and without a document type that declares nothing. */
export const plainSvg = (text: string): string =>
  text
    .replace(/^\uFEFF/, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/<!DOCTYPE[^[<>]*>/i, '')

/** Why the SVG is refused, and what to change; undefined if it is accepted. From `plainSvg`. */
export function findSvgProblem(svg: string): string | undefined {
  if (/<!|<\?(?!xml\s)/.test(svg)) return DAMAGED
  if (/\shref\s*=\s*["'](?!#)|:href\s*=\s*["'](?!#)/i.test(svg)) return OUTSIDE
  if (/url\((?!\s*["']?#)|@import/i.test(svg)) return OUTSIDE
  if (/\son\w+\s*=/i.test(svg)) return REFUSED[0]?.problem
  let depth = 0
  let references = 0
  for (const [, slash, name = '', attributes = ''] of svg.matchAll(TAG)) {
    if (slash) {
      depth--
      continue
    }
    const local = name.slice(name.indexOf(':') + 1)
    const refused = REFUSED.find(({ names }) => names.test(local))
    if (refused) return refused.problem
    if (/^(use|mask|clipPath|marker)$/.test(local)) references++
    if (!attributes.endsWith('/')) depth++
    if (depth > DEPTH_MAX || references > REFERENCES_MAX) return COMPLEX
  }
  return undefined
}
