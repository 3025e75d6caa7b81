import type { TlsPair } from './pair.ts'

/** What people see of the certificate. Texts of others are on one line of bounded length. */
export interface CertificateStatus {
  source: 'acme' | 'files'
  names: readonly NameStatus[]
  /** Epoch ms; undefined without a certificate. */
  from: number | undefined
  until: number | undefined
  /** Undefined for own files, and until it is known. */
  renewAt: number | undefined
  /** Why the newest files are not used, or nothing is ordered; a sentence. */
  problem: string | undefined
  orders: Readonly<Record<'issued' | 'failed', number>>
}

export interface NameStatus {
  name: string
  isActive: boolean
  /** The last error, as a sentence. */
  error: string | undefined
  /** Epoch ms of the next attempt; undefined if it is due, or if none will follow. */
  nextAt: number | undefined
}

/** Where the certificate comes from: an authority, or files of the operator. */
export interface CertificateSource {
  /** The active one. */
  readonly pair: TlsPair | undefined
  status(): CertificateStatus
  /** Tries again what has failed, within the limits. False: it was asked for a moment ago. */
  retry(): boolean
  /** Begins to follow changes. */
  start(threads: CertificateThreads): void
  /** Does what is due. Runs every second, and throws nothing. */
  check(): Promise<void>
  close(): void
}

/** The threads that use the certificate. */
export interface CertificateThreads {
  setCertificate(pair: TlsPair): Promise<void>
  /** Answers by token. Resolves when each thread has them. */
  setChallenges(answers: Readonly<Record<string, string>>): Promise<void>
}

const SENTENCE_MAX = 200

/** A text of the authority or the system on one line. */
export function oneLine(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  return line.length > SENTENCE_MAX ? `${line.slice(0, SENTENCE_MAX)}…` : line
}
