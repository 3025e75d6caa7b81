export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

type Fields = Record<string, string | number | boolean | null | undefined>

export interface Log {
  debug(event: string, fields?: Fields): void
  info(event: string, fields?: Fields): void
  warn(event: string, fields?: Fields): void
  error(event: string, fields?: Fields & { cause?: never }, cause?: unknown): void
}

interface LogOptions {
  level: LogLevel
  /** Receives one finished line without its newline. */
  write?: (line: string) => void
  /** Human text instead of JSON. */
  human?: boolean
  now?: () => number
}

/**
 * One line an event: JSON for machines, or text for a person at a terminal. The only console of the
 * program.
 */
export function createLog({
  level,
  write = (line) => console.error(line),
  human = process.stderr.isTTY === true,
  now = Date.now,
}: LogOptions): Log {
  const least = LOG_LEVELS.indexOf(level)
  const emit = (at: LogLevel, event: string, fields: Fields = {}, cause?: unknown) => {
    if (LOG_LEVELS.indexOf(at) < least) return
    const time = new Date(now()).toISOString()
    const all = cause === undefined ? fields : { ...fields, cause: describe(cause) }
    write(
      human ? humanLine(time, at, event, all) : JSON.stringify({ time, level: at, event, ...all }),
    )
  }
  return {
    debug: (event, fields) => emit('debug', event, fields),
    info: (event, fields) => emit('info', event, fields),
    warn: (event, fields) => emit('warn', event, fields),
    error: (event, fields, cause) => emit('error', event, fields, cause),
  }
}

function humanLine(time: string, level: LogLevel, event: string, fields: Fields): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
  return [time.slice(11, 19), level.padEnd(5), event, ...pairs].join(' ')
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
}

/** Prints what a command was asked for on standard output. */
export const print = (text: string): void => console.log(text)

/** Prints why a command failed on standard error. */
export const printError = (text: string): void => console.error(text)
