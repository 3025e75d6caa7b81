import type { Script, Valkey } from '../lib/valkey.ts'
import type { SecretHasher } from './secrets.ts'

/** Characters of a hash in a key: 128 bits. */
const HASH_CHARS = 22
const INSTALLATION_CHARS = 8

interface SharedStoreOptions {
  valkey: Pick<Valkey, 'run' | 'isUp'>
  hasher: SecretHasher
  /** Separates installations that use the same server. */
  baseUrl: string
}

/**
 * Counts that the hosts of an installation share. Keys have a fixed length and contain only hashes
 * made with the installation's secret key: no address, account or e-mail can be read there.
 */
export class SharedStore {
  readonly #options: SharedStoreOptions
  readonly #host: string
  readonly #prefix: string
  #unavailable = 0

  constructor(options: SharedStoreOptions) {
    this.#options = options
    this.#host = new URL(options.baseUrl).host
    this.#prefix = `hopcode:${this.#hash('').slice(0, INSTALLATION_CHARS)}`
  }

  get isUp(): boolean {
    return this.#options.valkey.isUp
  }

  /** Scripts that were not run: this host alone decided. */
  get unavailable(): number {
    return this.#unavailable
  }

  key(kind: string, caller: string): string {
    return `${this.#prefix}:${kind}:${this.#hash(`${kind} ${caller}`)}`
  }

  /** See `Valkey.run`. */
  async run(
    script: Script,
    keys: readonly string[],
    args: readonly number[],
  ): Promise<readonly number[] | undefined> {
    const reply = await this.#options.valkey.run(script, keys, args)
    if (!reply) this.#unavailable++
    return reply
  }

  #hash(text: string): string {
    const { hasher } = this.#options
    const hash = hasher.hash('shared-limit', `${this.#host} ${text}`)
    return hash.toString('base64url').slice(0, HASH_CHARS)
  }
}
