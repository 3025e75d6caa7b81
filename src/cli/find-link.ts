import { type Hopcode, HopcodeError, type OwnLink } from '../client/client.ts'

/** Finds links of the account by what a person knows of them, through the API. */

/** The link that the text redirects to: a code, an alias or a short URL. */
export async function findByAddress(hopcode: Hopcode, text: string): Promise<OwnLink | undefined> {
  // A URL with one of these as its last part names another endpoint.
  if (/^\.{0,2}$/.test(text.trim())) return undefined
  try {
    return await hopcode.getLink(text)
  } catch (error) {
    if (error instanceof HopcodeError && error.kind === 'not_found') return undefined
    throw error
  }
}

/**
 * Codes of the links whose title contains the text, in any letter case, the newest first. The list
 * of the API searches codes and URLs only, so this reads the export.
 */
export async function findByTitle(hopcode: Hopcode, text: string): Promise<string[]> {
  const sought = comparable(text)
  if (sought === '') return []
  const codes: string[] = []
  for await (const line of linesOf(await hopcode.exportLinks())) {
    const { code, title } = JSON.parse(line) as { code?: string; title?: string | null }
    if (code !== undefined && title && comparable(title).includes(sought)) codes.push(code)
  }
  return codes.reverse()
}

const comparable = (text: string): string => text.normalize('NFKC').trim().toLowerCase()

async function* linesOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
  if (rest !== '') yield rest
}
