import { writeFile } from 'node:fs/promises'
import type { Command } from '@commander-js/extra-typings'
import { Hopcode, HopcodeError, HopcodeNetworkError, type OwnLink } from '../client/client.ts'
import { readConfig } from '../config.ts'
import { parseQrOptions } from '../draw/options.ts'
import { renderQr } from '../draw/render.ts'
import { print, printNotice, printPicture } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { Columns } from './columns.ts'
import { CommandError } from './errors.ts'
import { type Flag, JSON_LINES, JSON_OBJECT, parseText } from './options.ts'
import { findService } from './socket.ts'
import { terminalQr } from './terminal-qr.ts'

export const REMOTE =
  'It calls the service at HOPCODE_URL with the API key HOPCODE_API_KEY. Without HOPCODE_URL, it ' +
  'calls the service that uses DATA_DIR on this machine.'

/** Commands that call a running service, here or elsewhere, with an API key. */
export function addRemoteCommands(program: Command): void {
  program
    .command('shorten')
    .summary('shorten a URL with a service')
    .description(`Shorten a URL with a service. ${REMOTE}`)
    .argument('<URL>', 'the destination; https:// may be absent')
    .option('--qr', 'print its QR code, as on a terminal')
    .option('--no-qr', 'print no QR code on a terminal')
    .option(...JSON_OBJECT)
    .action(async (url, options) => shorten(await target(), url, options))
  program
    .command('links')
    .summary('list your links, or those that contain the text')
    .description(`List your links, or those that contain the text. ${REMOTE}`)
    .argument('[TEXT]', 'part of a code, URL, title, tag, note or alias; or a short URL')
    .option(...JSON_LINES)
    .action(async (text, options) => links(await target(), text, options))
  program
    .command('qr')
    .summary('save the QR code of a link as CODE.png')
    .description(`Save the QR code of a link as CODE.png. ${REMOTE}`)
    .argument('<LINK>', 'its code or short URL; with an API key, its alias or title too', parseText)
    .option(
      '--out <FILE>',
      'the file to write: PNG, or SVG if it ends with .svg; - is standard output',
      parseText,
    )
    .option(...JSON_OBJECT)
    .action(async (text, options) => {
      const saved = await saveQr(await target(), text, options)
      // Standard output may be the image itself.
      if (options.out === '-') await printNotice(saved)
      else print(saved)
    })
}

export async function target(): Promise<Target> {
  const { dataDir, remote, baseUrl, https } = readConfig()
  // With https, the port without TLS accepts no keys.
  const local = https ? undefined : (await findService(dataDir))?.address
  return { ...remote, url: remote.url ?? local ?? baseUrl }
}

export interface Target {
  url: string
  apiKey: string | undefined
}

/** Fewer than the client's default, because a person waits. */
const RETRIES_MAX = 2

/** Prints the QR code, the short URL and the passcode, or the whole answer as JSON. */
async function shorten(
  service: Target,
  url: string,
  { json, qr }: { json?: Flag; qr?: boolean | undefined },
): Promise<void> {
  const link = await explained(service.url, keyHolder(service).shorten(withScheme(url)))
  if (json) return print(JSON.stringify(link))
  const { width, picture } = terminalQr(link.short_url)
  // Lines that a narrow terminal breaks are no code.
  const { isTTY = false, columns } = process.stdout
  if (qr ?? (isTTY && columns >= width)) printPicture(picture)
  print(link.short_url)
  if (!link.reused) print(`Passcode, shown only this once: ${link.passcode}`)
}

/** Links that get the same columns at once. */
const ROWS_AT_ONCE = 200
/** Terminal cells of a title; none is cut in a pipe. */
const TITLE_MAX = 40

/** Prints one line for each link, the newest first. */
async function links(
  service: Target,
  text: string | undefined,
  { json }: { json?: Flag },
): Promise<void> {
  let count = 0
  const { isTTY = false, columns: width } = process.stdout
  const title = isTTY ? { max: TITLE_MAX } : {}
  const columns = new Columns([{}, { isNumber: true }, title, {}], isTTY ? width : undefined)
  let rows: string[][] = []
  const flush = () => {
    for (const line of columns.lines(rows)) print(line)
    rows = []
  }
  const showAll = async () => {
    for await (const link of found(keyHolder(service), text)) {
      count++
      if (json) print(JSON.stringify(link))
      else if (rows.push(rowOf(link)) === ROWS_AT_ONCE) flush()
    }
    flush()
  }
  await explained(service.url, showAll())
  if (count === 0 && text) throw new CommandError(noLink(text))
  if (count === 0 && !json) print('No links.')
}

const rowOf = ({ display_url, hit_count, title, url }: OwnLink): string[] => [
  display_url,
  // The numbers end below each other.
  hit_count === 1 ? '1 hit ' : `${hit_count} hits`,
  title ?? '',
  url ?? '(reserved)',
]

const noLink = (text: string) => `no link has the code, address or title “${text}”`

/** The link that the text names, or else all that match it, the newest first. */
async function* found(hopcode: Hopcode, text: string | undefined): AsyncGenerator<OwnLink> {
  const named = text === undefined ? undefined : await findByAddress(hopcode, text)
  if (named) yield named
  else yield* hopcode.allLinks(text === undefined ? {} : { search: text })
}

/** The link of the account that the text redirects to: a code, an alias or a short URL. */
async function findByAddress(hopcode: Hopcode, text: string): Promise<OwnLink | undefined> {
  // A URL with one of these as its last part names another endpoint.
  if (/^\.{0,2}$/.test(text.trim())) return undefined
  try {
    return await hopcode.getLink(text)
  } catch (error) {
    if (error instanceof HopcodeError && error.kind === 'not_found') return undefined
    throw error
  }
}

/** What `qr` saves. */
interface QrFile {
  /** Without its ending. */
  name: string
  bytes: (format: 'png' | 'svg') => Promise<Uint8Array>
}

/** Throws CommandError unless the text names one link. */
async function qrFileOf(service: Target, text: string): Promise<QrFile> {
  const code = /^(?:.*\/)?([a-z\d]{6,20})\/?(?:[?#].*)?$/i.exec(text.trim())?.[1]?.toUpperCase()
  const anonymous = new Hopcode({ url: service.url, retriesMax: RETRIES_MAX })
  const ofCode = (name: string): QrFile => ({
    name,
    bytes: async (format) => (await explained(service.url, anonymous.qr(name, { format }))).bytes,
  })
  if (!service.apiKey) {
    if (code !== undefined) return ofCode(code)
    throw new CommandError(`“${text}” is no code. Set HOPCODE_API_KEY to name an alias or a title`)
  }
  const own = await explained(service.url, findOne(keyHolder(service), text))
  if (own) {
    const { code: name, display_url } = own
    // The same image as that of the service, which draws the address with the code only.
    return { name, bytes: async (format) => renderQr(display_url, parseQrOptions({ format })) }
  }
  // The code of another account has an image too.
  if (code !== undefined && (await exists(service, code))) return ofCode(code)
  throw new CommandError(noLink(text))
}

/** The link of the account that the text names. Throws CommandError unless it names one. */
export async function requireOne(service: Target, text: string): Promise<OwnLink> {
  const link = await explained(service.url, findOne(keyHolder(service), text))
  if (!link) throw new CommandError(noLink(text))
  return link
}

/** Throws CommandError if several links match. */
async function findOne(hopcode: Hopcode, text: string): Promise<OwnLink | undefined> {
  if (text.trim() === '') return undefined
  const matches: OwnLink[] = []
  for await (const link of found(hopcode, text)) {
    if (matches.push(link) > NAMED_MAX) break
  }
  if (matches.length <= 1) return matches[0]
  const names = matches.slice(0, NAMED_MAX).map(({ display_url }) => display_url)
  const more = matches.length > NAMED_MAX ? ', …' : ''
  throw new CommandError(`several links match “${text}”: ${names.join(', ')}${more}`)
}

const NAMED_MAX = 5

async function exists({ url }: Target, code: string): Promise<boolean> {
  const lookup = new Hopcode({ url, retriesMax: RETRIES_MAX }).lookup(code).then(
    () => true,
    (error) => {
      if (error instanceof HopcodeError && error.kind === 'not_found') return false
      throw error
    },
  )
  return explained(url, lookup)
}

/** Saves the image, as SVG if the name ends with `.svg`. Returns the message to print. */
async function saveQr(
  service: Target,
  text: string,
  { out, json }: { out?: string | undefined; json?: Flag },
): Promise<string> {
  const qr = await qrFileOf(service, text)
  const file = out ?? `${qr.name}.png`
  const format = file.toLowerCase().endsWith('.svg') ? 'svg' : 'png'
  const bytes = await qr.bytes(format)
  const isStream = file === '-'
  if (isStream) await Bun.write(Bun.stdout, bytes)
  else {
    try {
      // Never replaces a file.
      await writeFile(file, bytes, { flag: 'wx', mode: 0o644 })
    } catch (error) {
      throw new CommandError(`${file} cannot be written: ${messageOf(error)}`)
    }
  }
  if (json) return JSON.stringify({ file, format, bytes: bytes.length, code: qr.name })
  return isStream ? `${bytes.length} bytes of ${format.toUpperCase()}` : `Saved ${file}`
}

export function keyHolder({ url, apiKey }: Target): Hopcode {
  if (!apiKey) throw new CommandError('set HOPCODE_API_KEY to an API key of the service')
  return new Hopcode({ url, apiKey, retriesMax: RETRIES_MAX })
}

/** Adds `https://` as browsers do. A name with a dot before the colon is a host, not a scheme. */
const withScheme = (url: string): string =>
  /^[a-z][a-z\d+-]*:/i.test(url) ? url : `https://${url}`

/** Reports a refusal or an unreachable service as one line. */
export async function explained<Result>(url: string, call: Promise<Result>): Promise<Result> {
  try {
    return await call
  } catch (error) {
    if (error instanceof HopcodeError) throw new CommandError(error.message, { cause: error })
    if (error instanceof HopcodeNetworkError) {
      const { host } = new URL(url)
      const advice = 'Is the service running, and is HOPCODE_URL right?'
      throw new CommandError(`${host} does not answer. ${advice}`, { cause: error })
    }
    throw error
  }
}
