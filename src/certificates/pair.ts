import { createPrivateKey, X509Certificate } from 'node:crypto'

/** A certificate with its chain, and its key: PEM. */
export interface TlsPair {
  cert: string
  key: string
}

export interface Certificate {
  pair: TlsPair
  leaf: X509Certificate
  /** Epoch ms. */
  from: number
  until: number
}

/** What is wrong with one of the two texts. */
export class PairError extends Error {
  override readonly name = 'PairError'
  readonly part: keyof TlsPair

  constructor(part: keyof TlsPair, message: string) {
    super(message)
    this.part = part
  }
}

/** Throws PairError, whose message continues the name of a file. */
export function readPair(pair: TlsPair): Certificate {
  const leaf = attempt('cert', 'has no certificate (PEM)', () => new X509Certificate(pair.cert))
  const key = attempt('key', 'has no private key (PEM) without a passphrase', () =>
    createPrivateKey(pair.key),
  )
  if (!leaf.checkPrivateKey(key)) throw new PairError('key', 'is the key of another certificate')
  return { pair, leaf, from: Date.parse(leaf.validFrom), until: Date.parse(leaf.validTo) }
}

function attempt<Result>(part: keyof TlsPair, message: string, read: () => Result): Result {
  try {
    return read()
  } catch {
    throw new PairError(part, message)
  }
}

/** Whether browsers accept the certificate for the host. */
export const covers = ({ leaf }: Certificate, host: string): boolean =>
  leaf.checkHost(host) !== undefined
