import { writeFile } from 'node:fs/promises'
import type { Command } from '@commander-js/extra-typings'
import { Hopcode, HopcodeError, HopcodeNetworkError } from '../client/client.ts'
import { readConfig } from '../config.ts'
import { print, printNotice } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { CommandError } from './errors.ts'
import { type Flag, JSON_LINES, parseText } from './options.ts'
import { findService } from './socket.ts'

const REMOTE =
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
    .argument('[TEXT]', 'part of a code or a URL')
    .option(...JSON_LINES)
    .action(async (text, options) => links(await target(), text, options))
  program
    .command('qr')
    .summary('save the QR code as CODE.png')
    .description(`Save the QR code as CODE.png. ${REMOTE}`)
    .argument('<CODE>', 'of the link')
    .option(
      '--out <FILE>',
      'the file to write: PNG, or SVG if it ends with .svg; - is standard output',
      parseText,
    )
    .action(async (code, { out }) => {
      const saved = await saveQr(await target(), code, out)
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

/** Prints one line for each link, the newest first. */
async function links(
  service: Target,
  text: string | undefined,
  { json }: { json?: Flag },
): Promise<void> {
  const all = keyHolder(service).listAll(text ? { search: text } : {})
  for (let count = 0; ; count++) {
    const { value: link, done } = await explained(service.url, all.next())
    if (done) {
      if (count === 0 && !json) print('No links.')
      return
    }
    const { short_url, hit_count, url } = link
    const hits = hit_count === 1 ? '1 hit' : `${hit_count} hits`
    print(json ? JSON.stringify(link) : `${short_url}  ${hits}  ${url ?? '(reserved)'}`)
  }
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

function keyHolder({ url, apiKey }: Target): Hopcode {
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
