import { readFileSync, statSync } from 'node:fs'
import { ConfigError } from '../config.ts'
import { type Clock, isoTime, type MonotonicClock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { type Certificate, covers, PairError, readPair, type TlsPair } from './pair.ts'
import {
  type CertificateSource,
  type CertificateStatus,
  type CertificateThreads,
  oneLine,
} from './status.ts'

const CHECK_MS = 30 * SECOND

interface OwnFilesOptions {
  files: { certificate: string; key: string }
  /** Of the service. */
  hosts: () => readonly string[]
  clock: Clock
  monotonic: MonotonicClock
  log: Log
}

/** The certificate in files of the operator, which is replaced while the service runs. */
export class OwnFiles implements CertificateSource {
  readonly #options: OwnFilesOptions
  #certificate: Certificate
  /** Of the files that were read last. */
  #identity: string
  #checkedAt: number
  #problem: string | undefined
  #threads: CertificateThreads | undefined
  #timer: Timer | undefined

  /** Throws ConfigError. */
  constructor(options: OwnFilesOptions) {
    this.#options = options
    this.#identity = this.#identify()
    this.#checkedAt = options.monotonic()
    try {
      this.#certificate = this.#read()
    } catch (error) {
      throw new ConfigError(`Bad setting: ${(error as Error).message}`)
    }
  }

  get pair(): TlsPair {
    return this.#certificate.pair
  }

  start(threads: CertificateThreads): void {
    this.#threads = threads
    this.#timer = setInterval(() => void this.check(), SECOND).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** The next check reads the files again. */
  retry(): boolean {
    this.#identity = ''
    this.#checkedAt = Number.NEGATIVE_INFINITY
    return true
  }

  status(): CertificateStatus {
    const certificate = this.#certificate
    const { from, until } = certificate
    return {
      source: 'files',
      names: this.#options.hosts().map((name) => ({
        name,
        isActive: covers(certificate, name),
        error: undefined,
        nextAt: undefined,
      })),
      from,
      until,
      renewAt: undefined,
      problem: this.#problem,
      orders: { issued: 0, failed: 0 },
    }
  }

  async check(): Promise<void> {
    const { monotonic, log } = this.#options
    const now = monotonic()
    if (now - this.#checkedAt < CHECK_MS) return
    this.#checkedAt = now
    const identity = this.#identify()
    if (identity === this.#identity) return
    this.#identity = identity
    try {
      const next = this.#read()
      const isSame = next.pair.cert === this.pair.cert && next.pair.key === this.pair.key
      this.#certificate = next
      this.#problem = undefined
      if (isSame) return
      await this.#threads?.setCertificate(next.pair)
      log.info('certificate.active', { expires_at: isoTime(next.until) })
    } catch (error) {
      this.#problem = oneLine((error as Error).message)
      log.error('certificate.files_refused', { reason: this.#problem, effect: 'the old one stays' })
    }
  }

  /** Changes with the files; also if one is missing. */
  #identify(): string {
    const { certificate, key } = this.#options.files
    const of = (path: string) => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      return found ? [found.ino, found.size, found.mtimeNs].join(' ') : 'missing'
    }
    try {
      return `${of(certificate)}, ${of(key)}`
    } catch (error) {
      return String(error)
    }
  }

  /** Throws an error with one sentence, which begins with the name of a setting. */
  #read(): Certificate {
    const { files, clock } = this.#options
    const names = {
      cert: `TLS_CERT_FILE ${files.certificate}`,
      key: `TLS_KEY_FILE ${files.key}`,
    }
    const text = (part: keyof TlsPair, path: string) => {
      try {
        return readFileSync(path, 'utf8')
      } catch (error) {
        const reason = (error as NodeJS.ErrnoException).code ?? 'error'
        throw new PairError(part, `cannot be read (${reason})`)
      }
    }
    try {
      const found = readPair({ cert: text('cert', files.certificate), key: text('key', files.key) })
      if (found.until > clock()) return found
      throw new PairError('cert', `has expired at ${isoTime(found.until)}`)
    } catch (error) {
      const part = error instanceof PairError ? `${names[error.part]} ` : ''
      throw new Error(part + (error as Error).message)
    }
  }
}
