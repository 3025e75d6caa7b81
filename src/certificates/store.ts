import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DAY } from '../lib/clock.ts'
import { writeOnce } from '../lib/flush.ts'
import { parseJson } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { refuseLink } from '../lib/symbolic-links.ts'
import { type Certificate, readPair, type TlsPair } from './pair.ts'

/** Folder of the certificate in `DATA_DIR`. It is not in backups: a lost key costs one order. */
export const CERTIFICATES = 'certificates'

/** Time that orders are kept: longer than any span that is counted. */
const ORDERS_KEPT_MS = 8 * DAY

/** An order, which is stored before the authority is asked for it. */
const OrderRecord = z.object({
  at: z.number(),
  names: z.array(z.string()),
  /** It replaces a certificate, which the authority does not count as a new one. */
  isRenewal: z.boolean(),
  /** Of the authority; absent until it has answered. */
  url: z.string().optional(),
  /** Absent while it is under way, and after a crash. */
  result: z.enum(['issued', 'failed']).optional(),
  /** Names that were not validated. */
  failed: z.array(z.string()).optional(),
})
export type OrderRecord = z.infer<typeof OrderRecord>

const State = z.object({
  /** Those of the last days, the oldest first. */
  orders: z.array(OrderRecord),
  /** Names that have failed, how often in a row, and when each is tried again. */
  names: z.record(
    z.string(),
    z.object({ failures: z.number(), error: z.string(), nextAt: z.number() }),
  ),
  /** The authority wants no orders before. */
  blockedUntil: z.number(),
  /** By how much the clock of the authority is ahead of this machine's, if that matters. */
  aheadMs: z.number(),
  /** Of the certificate `id`: a time between `start` and `end`, and when to ask again. */
  renewal: z
    .object({
      id: z.string(),
      start: z.number(),
      end: z.number(),
      at: z.number(),
      askAt: z.number(),
    })
    .optional(),
  /** Fingerprint of the certificate that this authority has issued. */
  active: z.string().optional(),
})
export type CertificateState = z.infer<typeof State>
const States = z.record(z.string(), State)

const Account = z.object({ key: z.string(), url: z.string().optional() })

export interface AcmeAccount {
  keys: ReturnType<typeof newKeys>
  url: string | undefined
}

/** Keys of the curve P-256. */
export const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

export const pemOf = ({ privateKey }: ReturnType<typeof newKeys>): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

const PRIVATE_KEY = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----\n?/

/** What the service keeps of its certificate. Each file is written as a whole, and private. */
export class CertificateStore {
  readonly #dir: string
  /** The authority, whose account and state are apart from those of others. */
  readonly #directory: string
  readonly #log: Log

  constructor({ dataDir, directory, log }: { dataDir: string; directory: string; log: Log }) {
    this.#dir = join(dataDir, CERTIFICATES)
    this.#directory = directory
    this.#log = log
  }

  /** Undefined without one, and for a damaged file. */
  readCertificate(): Certificate | undefined {
    const text = this.#read('current.pem')
    if (text === undefined) return undefined
    try {
      const key = PRIVATE_KEY.exec(text)?.[0] ?? ''
      return readPair({ key, cert: text.replace(PRIVATE_KEY, '') })
    } catch (error) {
      this.#log.error('certificate.damaged', { file: join(this.#dir, 'current.pem') }, error)
      return undefined
    }
  }

  writeCertificate({ key, cert }: TlsPair): void {
    this.#write('current.pem', key + cert)
  }

  /** The state of this authority, and whether another one has issued the certificate. */
  readState(fingerprint: string | undefined, now: number) {
    const states = this.#readStates()
    const { [this.#directory]: own, ...others } = states
    const isForeign =
      fingerprint !== undefined &&
      own?.active !== fingerprint &&
      Object.values(others).some(({ active }) => active === fingerprint)
    const state: CertificateState = own ?? {
      orders: [],
      names: {},
      blockedUntil: 0,
      aheadMs: 0,
    }
    // A clock that was ahead must not stop orders for years.
    const latest = now + state.aheadMs
    for (const order of state.orders) order.at = Math.min(order.at, latest)
    return { state, isForeign }
  }

  writeState(state: CertificateState, now: number): void {
    state.orders = state.orders.filter(({ at }) => now - at < ORDERS_KEPT_MS)
    this.#write('state.json', JSON.stringify({ ...this.#readStates(), [this.#directory]: state }))
  }

  /** The account at the authority; its key is created at the first call. */
  readAccount(): AcmeAccount {
    const stored = Account.safeParse(parseJson(this.#read(this.#accountFile) ?? ''))
    if (stored.success) {
      const privateKey = createPrivateKey(stored.data.key)
      return { keys: { privateKey, publicKey: createPublicKey(privateKey) }, url: stored.data.url }
    }
    const account = { keys: newKeys(), url: undefined }
    // Before it is used: the authority returns the same account for the same key.
    this.writeAccount(account)
    return account
  }

  writeAccount({ keys, url }: AcmeAccount): void {
    this.#write(this.#accountFile, JSON.stringify({ key: pemOf(keys), url }))
  }

  get #accountFile(): string {
    const hash = createHash('sha256').update(this.#directory).digest('hex')
    return `account-${hash.slice(0, 8)}.json`
  }

  #readStates(): z.infer<typeof States> {
    const text = this.#read('state.json')
    const states = States.safeParse(parseJson(text ?? ''))
    if (states.success) return states.data
    if (text !== undefined) this.#log.error('certificate.damaged', { file: 'state.json' })
    return {}
  }

  #read(name: string): string | undefined {
    const file = join(this.#dir, name)
    refuseLink(file)
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined
  }

  /** Throws if the disk refuses. */
  #write(name: string, text: string): void {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 })
    chmodSync(this.#dir, 0o700)
    const file = join(this.#dir, name)
    refuseLink(file)
    writeOnce(file, text)
  }
}
