import { writeFile } from 'node:fs/promises'
import type { Command } from '@commander-js/extra-typings'
import {
  Hopcode,
  HopcodeError,
  HopcodeNetworkError,
  type ListedLink,
  type OwnLink,
} from '../client/client.ts'
import { readConfig } from '../config.ts'
import { print, printNotice } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { CommandError } from './errors.ts'
import { findByAddress, findByTitle } from './find-link.ts'
import { type Flag, JSON_LINES, parseText } from './options.ts'
import { findService } from './socket.ts'

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
    .option(...JSON_LINES)
    .action(async (url, options) => print(await shorten(await target(), url, options)))
  program
    .command('links')
    .summary('list your links, or those that contain the text')
    .description(`List your links, or those that contain the text. ${REMOTE}`)
    .argument('[TEXT]', 'part of a code, a URL or a title, or an alias or short URL')
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
    .action(async (text, { out }) => {
      const service = await target()
      const saved = await saveQr(service, await codeOf(service, text), out)
      // Standard output may be the image itself.
      if (out === '-') await printNotice(saved)
      else print(saved)
    })
}

export async function target(): Promise<Target> {
  const { dataDir, remote, baseUrl } = readConfig()
  return { ...remote, url: remote.url ?? (await findService(dataDir))?.address ?? baseUrl }
}

interface Target {
  url: string
  apiKey: string | undefined
}

/** Fewer than the client's default, because a person waits. */
const RETRIES_MAX = 2

/** Returns the short URL and the passcode, or the whole answer as JSON. */
async function shorten(service: Target, url: string, { json }: { json?: Flag }): Promise<string> {
  const link = await explained(service.url, keyHolder(service).shorten(withScheme(url)))
  if (json) return JSON.stringify(link)
  if (link.reused) return link.short_url
  return `${link.short_url}\nPasscode, shown only this once: ${link.passcode}`
}

/**
 * Prints one line for each link, the newest first. If no code and no URL contains the text, it may
 * be an alias or short URL, or else a part of titles.
 */
async function links(
  service: Target,
  text: string | undefined,
  { json }: { json?: Flag },
): Promise<void> {
  const hopcode = keyHolder(service)
  let count = 0
  const show = (link: ListedLink) => {
    count++
    const hits = link.hit_count === 1 ? '1 hit' : `${link.hit_count} hits`
    const line = `${link.short_url}  ${hits}  ${link.url ?? '(reserved)'}`
    print(json ? JSON.stringify(link) : line)
  }
  const showByAddress = async (address: string) => {
    const link = await findByAddress(hopcode, address)
    if (link) show(listed(link))
  }
  const showAll = async () => {
    // A short URL names one link, whose displayed address the list does not have.
    if (text && /[./]/.test(text)) await showByAddress(text)
    if (count > 0) return
    for await (const link of hopcode.listAll(text ? { search: text } : {})) show(link)
    if (count > 0 || !text) return
    await showByAddress(text)
    if (count > 0) return
    for (const code of await findByTitle(hopcode, text)) await showByAddress(code)
  }
  await explained(service.url, showAll())
  if (count === 0 && text) throw new CommandError(noLink(text))
  if (count === 0 && !json) print('No links.')
}

/** The properties that the list has. The address is the one that people see. */
const listed = ({
  code,
  url,
  created_at,
  hit_count,
  display_url,
  qr_url,
}: OwnLink): ListedLink => ({
  code,
  url,
  created_at,
  hit_count,
  short_url: display_url,
  qr_url,
})

const noLink = (text: string) => `no link has the code, address or title “${text}”`

/** Throws CommandError unless the text names one link. */
export async function codeOf(service: Target, text: string): Promise<string> {
  const inAddress = /^(?:.*\/)?([a-z\d]{6,20})\/?(?:[?#].*)?$/i.exec(text.trim())?.[1]
  if (!service.apiKey) {
    if (inAddress !== undefined) return inAddress
    throw new CommandError(`“${text}” is no code. Set HOPCODE_API_KEY to name an alias or a title`)
  }
  const hopcode = keyHolder(service)
  const own = await explained(service.url, findByAddress(hopcode, text))
  if (own) return own.code
  const titled = await explained(service.url, findByTitle(hopcode, text))
  if (titled.length > 1) {
    const codes = titled.slice(0, NAMED_MAX).join(', ') + (titled.length > NAMED_MAX ? ', …' : '')
    throw new CommandError(`${titled.length} links have such a title: ${codes}`)
  }
  if (titled[0] !== undefined) return titled[0]
  // The code of another account has an image too.
  if (inAddress === undefined || !(await exists(service, inAddress))) {
    throw new CommandError(noLink(text))
  }
  return inAddress
}

const NAMED_MAX = 5

async function exists({ url }: Target, code: string): Promise<boolean> {
  const found = new Hopcode({ url, retriesMax: RETRIES_MAX }).lookup(code).then(
    () => true,
    (error) => {
      if (error instanceof HopcodeError && error.kind === 'not_found') return false
      throw error
    },
  )
  return explained(url, found)
}

/** Saves the image, as SVG if the name ends with `.svg`. Returns the message to print. */
async function saveQr(
  service: Target,
  code: string,
  file = `${code.toUpperCase()}.png`,
): Promise<string> {
  const hopcode = new Hopcode({ url: service.url, retriesMax: RETRIES_MAX })
  const format = file.toLowerCase().endsWith('.svg') ? 'svg' : 'png'
  const { bytes } = await explained(service.url, hopcode.qr(code, { format }))
  if (file === '-') {
    await Bun.write(Bun.stdout, bytes)
    return `${bytes.length} bytes of ${format.toUpperCase()}`
  }
  try {
    // Never replaces a file.
    await writeFile(file, bytes, { flag: 'wx', mode: 0o644 })
  } catch (error) {
    throw new CommandError(`${file} cannot be written: ${messageOf(error)}`)
  }
  return `Saved ${file}`
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
