import { JSONParser } from '@streamparser/json'
import { messageOf } from '../lib/thread.ts'
import {
  FIRST_ROW_MAX,
  isObject,
  Pages,
  SourceError,
  type SourceFile,
  type SourceRow,
} from './source.ts'
import { type Beginning, textOf } from './text.ts'

/** Where the APIs of other services have their links. YOURLS has an object, others have lists. */
const LISTS = ['links', 'data', 'shortUrls.data', 'urls']
/**
 * Characters without the end of a link. A link of the allowed lengths is far shorter. Bounds the
 * memory: each character can begin one more list, which needs about 180 bytes.
 */
const LINK_CHARACTERS_MAX = 256 * 1024

const unreadMax = (rows: number) => (rows === 0 ? FIRST_ROW_MAX : LINK_CHARACTERS_MAX)

/**
 * The links of JSON: a list of them, one a line, or pages of an API, also several in one file.
 * Throws SourceError. `file.pages` then knows whether some are missing.
 */
export async function* readJson(
  { name, blob, pages = new Pages() }: SourceFile,
  { encoding, start }: Beginning,
): AsyncGenerator<SourceRow, void> {
  const found: SourceRow['values'][] = []
  const parser = new JSONParser({
    paths: pathsOf(start),
    // Documents may follow one another.
    separator: '',
    keepStack: false,
  })
  parser.onValue = ({ value, key }) => {
    if (isObject(value) && !pages.note(value)) found.push(value)
    else if (key === 'list_complete') pages.isComplete = value === true
  }
  let line = 0
  let unread = 0
  const foundRows = function* (): Generator<SourceRow, void> {
    for (const values of found.splice(0)) yield { line: ++line, values }
  }
  try {
    for await (const text of textOf(blob, encoding)) {
      // Titles may contain control characters, which are not valid. Between values they are spaces.
      parser.write(text.replace(/\p{Cc}/gu, ' '))
      unread = found.length > 0 ? 0 : unread + text.length
      if (unread > unreadMax(line)) throw new Error('it has no links, or a very long one')
      yield* foundRows()
    }
    parser.end()
  } catch (error) {
    throw new SourceError(`${name} cannot be read as JSON after link ${line}: ${messageOf(error)}`)
  }
  yield* foundRows()
}

/** The paths of the links in the first document. */
function pathsOf(start: string): string[] {
  if (/^\s*\[/.test(start)) return ['$.*']
  const isPage = LISTS.some((list) =>
    new RegExp(`"${list.split('.').at(-1)}"\\s*:\\s*[[{]`).test(start.slice(0, 4096)),
  )
  if (!isPage) return ['$']
  const others = ['$.list_complete', '$.shortUrls.pagination']
  return [...LISTS.map((list) => `$.${list}.*`), ...others]
}
