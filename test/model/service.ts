/** The service, as the model's runs drive it: started, stopped, killed, told the time. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueKey } from '../../src/accounts/keys.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { SettingStore } from '../../src/db/settings.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { maintenanceSetting } from '../../src/maintenance/mode.ts'
import { type KeyStoreDeps, revokeKey, rotateKey } from '../support/administration.ts'
import { type Answer, START, toAnswer } from '../support/app.ts'
import type { Plan } from './accounts.ts'
import type { Call, ModelSettings, Moment } from './model.ts'

export type FromParent = { time: Moment } | { stop: true }
export type FromService = { port: number } | { done: true }

/** Budgets so small that a run of fifty requests meets them; the other plans are the contract's. */
export const SETTINGS: ModelSettings = {
  baseUrl: 'http://hop.test',
  cdnUrl: 'http://hop.test/cdn',
  plans: {
    free: { read: 300, write: 60, bulk: 100 },
    pro: { read: 3000, write: 600, bulk: 1000 },
    enterprise: { read: 9, write: 7, bulk: 5 },
  },
  anonymous: { read: 12, write: 60, redirect: 15 },
  blockedHosts: ['hop.test', 'blocked.example'],
}

export class Service implements AsyncDisposable {
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'hopcode-model-'))
  readonly #blocklist = join(this.#dataDir, 'hosts.txt')
  /** Hosts on the list of the process that runs, its own too. */
  blocked: readonly string[] = SETTINGS.blockedHosts
  readonly time: Moment = { now: START, elapsed: 1000 }
  #child: Bun.Subprocess | undefined
  #port = 0
  #heard: (message: FromService) => void = () => {}

  get isRunning(): boolean {
    return this.#child !== undefined
  }

  /** Starts it with these hosts blocked beside those of the settings. */
  async start(blocked: readonly string[] = []): Promise<void> {
    this.blocked = [...SETTINGS.blockedHosts, ...blocked]
    writeFileSync(this.#blocklist, this.blocked.map((host) => `${host}\n`).join(''))
    const answered = this.#answer()
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'service-process.ts')], {
      env: {
        PORT: '0',
        HOST: '127.0.0.1',
        BASE_URL: SETTINGS.baseUrl,
        DATA_DIR: this.#dataDir,
        TRUSTED_PROXIES: '127.0.0.1',
        BLOCKLIST_FILES: this.#blocklist,
        HIT_FLUSH_MS: '100',
        ANONYMOUS_READS_PER_MINUTE: String(SETTINGS.anonymous.read),
        ANONYMOUS_REDIRECTS_PER_MINUTE: String(SETTINGS.anonymous.redirect),
        ENTERPRISE_READS_PER_MINUTE: String(SETTINGS.plans.enterprise.read),
        ENTERPRISE_WRITES_PER_MINUTE: String(SETTINGS.plans.enterprise.write),
        IMPORT_ALIASES: 'all',
        ENTERPRISE_BULK_MAX: String(SETTINGS.plans.enterprise.bulk),
        // Few links in memory, so that look-ups in the database take part.
        LINK_CACHE_MAX: '4',
        MODEL_NOW: String(this.time.now),
        MODEL_ELAPSED: String(this.time.elapsed),
      },
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: (message) => this.#heard(message as FromService),
    })
    this.#child = child
    const ended = child.exited.then((code) => {
      throw new Error(`the service ended with ${code} before it was ready`)
    })
    const message = await Promise.race([answered, ended])
    ended.catch(() => {})
    if ('port' in message) this.#port = message.port
  }

  /** As SIGTERM does, or as SIGKILL does. */
  async end(how: 'stop' | 'kill'): Promise<void> {
    const child = this.#child
    if (!child) return
    this.#child = undefined
    if (how === 'kill') child.kill('SIGKILL')
    else child.send({ stop: true } satisfies FromParent)
    await child.exited
  }

  /** `step`: the clock on the wall alone is set, ahead or back. */
  async move({ ms, step }: { ms: number; step: boolean }): Promise<void> {
    this.time.now += ms
    if (!step) this.time.elapsed += ms
    const answered = this.#answer()
    this.#child?.send({ time: this.time } satisfies FromParent)
    await answered
  }

  async ask({ method, path, key, from, body, type }: Call): Promise<Answer> {
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      method,
      headers: {
        'x-forwarded-for': from,
        ...(key !== undefined && { 'x-api-key': key }),
        ...(type !== undefined && { 'content-type': type }),
      },
      body: body ?? null,
      redirect: 'manual',
    })
    return toAnswer(response)
  }

  /** Returns the account's first key. */
  addAccount(name: string, plan: Plan): string {
    return this.#administer((deps) => {
      const { key, stored } = issueKey(deps)
      deps.accounts.create({ email: emailOf(name), plan, key: stored, now: this.time.now })
      return key
    })
  }

  /** Returns the new key. */
  rotateKey(name: string, now: boolean): string {
    return this.#administer((deps) => rotateKey(deps, idOf(deps, name), { now }))
  }

  revokeKey(name: string, now: boolean): void {
    this.#administer((deps) => revokeKey(deps, idOf(deps, name), { now }))
  }

  setPlan(name: string, plan: Plan): void {
    this.#administer((deps) => deps.accounts.change(idOf(deps, name), { plan }))
  }

  /** Until then; 0 ends it. */
  maintain(until: number): void {
    const { db } = openDataFolder(this.#dataDir)
    const { name, value } = maintenanceSetting(until)
    new SettingStore(db).set(name, value)
    db.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('kill')
    rmSync(this.#dataDir, { recursive: true, force: true })
  }

  #answer(): Promise<FromService> {
    return new Promise((resolve) => {
      this.#heard = resolve
    })
  }

  /** What the command line does: a connection of its own, beside the running service. */
  #administer<Result>(work: (deps: KeyStoreDeps) => Result): Result {
    const { db, accounts, hasher } = openDataFolder(this.#dataDir)
    try {
      return work({ accounts, hasher, clock: () => this.time.now, random: secureRandom })
    } finally {
      db.close()
    }
  }
}

const emailOf = (name: string) => `${name}@example.com`

function idOf({ accounts }: KeyStoreDeps, name: string): number {
  const id = accounts.findByEmail(emailOf(name))?.id
  if (id === undefined) throw new Error(`there is no account ${name}`)
  return id
}
