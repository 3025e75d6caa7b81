export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
type LogLevel = (typeof LOG_LEVELS)[number]

type Fields = Record<string, string | number | boolean | null | undefined>

export interface Log {
  debug(event: string, fields?: Fields): void
  info(event: string, fields?: Fields): void
  warn(event: string, fields?: Fields): void
  error(event: string, fields?: Fields & { cause?: never }, cause?: unknown): void
}

/** Maximum length of a text field, in characters: clients choose the text of some fields. */
const TEXT_MAX = 4000

interface LogOptions {
  level: LogLevel
  /** Receives one finished line without its newline. Default: prints it on standard error. */
  write?: (line: string) => void
  /** Human text instead of JSON. */
  human?: boolean
  /** Fields of the first line only, whichever event it is. */
  first?: Fields
  now?: () => number
}

/** One line per event: JSON for machines, or text for a person at a terminal. */
export function createLog({
  level,
  write = printError,
  human = process.stderr.isTTY === true,
  first = {},
  now = Date.now,
}: LogOptions): Log {
  const least = LOG_LEVELS.indexOf(level)
  let extra: Fields = first
  const emit = (at: LogLevel, event: string, given: Fields = {}, cause?: unknown) => {
    if (LOG_LEVELS.indexOf(at) < least) return
    const fields = { ...extra, ...given }
    extra = {}
    const time = new Date(now()).toISOString()
    write(
      human
        ? humanLine(time, at, event, fields, cause)
        : jsonLine({ time, level: at, event, ...fields }, cause),
    )
  }
  return {
    debug: (event, fields) => emit('debug', event, fields),
    info: (event, fields) => emit('info', event, fields),
    warn: (event, fields) => emit('warn', event, fields),
    error: (event, fields, cause) => emit('error', event, fields, cause),
  }
}

function jsonLine(fields: Fields, cause: unknown): string {
  const all = cause === undefined ? fields : { ...fields, cause: stackOf(cause) }
  return visible(JSON.stringify(all, (_, value) => cut(value)))
}

/** The lines of a cause are indented, so that none looks like an event. */
function humanLine(
  time: string,
  level: LogLevel,
  event: string,
  fields: Fields,
  cause: unknown,
): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${shown(value)}`,
  )
  const line = [time.slice(11, 19), level.padEnd(5), event, ...pairs].join(' ')
  if (cause === undefined) return line
  const lines = String(cut(stackOf(cause))).split(/\r\n|[\n\r\u2028\u2029]/)
  return [line, ...lines.map((text) => `    ${visible(text)}`)].join('\n')
}

/** A value as text, in quotes if it could be mistaken for something else. */
function shown(value: Fields[string]): string {
  const text = String(cut(value))
  return visible(/^[\w.:/@+,-]+$/.test(text) ? text : JSON.stringify(text))
}

function cut(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= TEXT_MAX) return value
  return `${value.slice(0, TEXT_MAX)}…`
}

/** Escapes control and direction characters, which a terminal or a log viewer would interpret. */
const visible = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped)

const escaped = (character: string): string =>
  [...Array(character.length).keys()]
    .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('')

export function stackOf(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
}

/**
 * Escapes what a terminal would interpret in the text of a command, which may come from a file:
 * control characters except line feeds and tabs, and those that change the direction of text.
 */
const printable = (text: string): string =>
  text.replace(/[^\P{Cc}\t\n]|[\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, escaped)

/** Prints the result of a command on standard output. */
export const print = (text: string): void => console.log(printable(text))

/** Prints a picture in characters and colors of the program's own. */
export const printPicture = (picture: string): void => console.log(picture)

/** Replaces the last line of a terminal; nothing where standard error is none. */
export function printProgress(text: string): void {
  // Return to the first column and erase the line.
  if (process.stderr.isTTY === true) process.stderr.write(`\r\x1b[K${printable(text)}`)
}

/**
 * Prints the success of a command on standard error, where standard output has its data.
 * `console.error` would color it as a failure on a terminal.
 */
export async function printNotice(text: string): Promise<void> {
  await Bun.write(Bun.stderr, `${printable(text)}\n`)
}

/** Prints the failure of a command on standard error. */
export const printError = (text: string): void => console.error(printable(text))
