import { rmSync } from 'node:fs'
import { RedisClient } from 'bun'
import { eventually } from './app.ts'
import { temporaryFolderInMemory } from './folder.ts'
import { freePort } from './ports.ts'

const PASSWORD = 'only-for-tests'

/** Adds to what entry 0 of each window adds to the server's clock: see src/limits/window.lua. */
const ADVANCE = `
  for _, key in ipairs(redis.call('KEYS', 'hopcode:*')) do
    if redis.call('TYPE', key).ok == 'list' then
      local entry = redis.call('LINDEX', key, 0) + ARGV[1] * 2 ^ 20
      redis.call('LSET', key, 0, string.format('%.0f', entry))
    end
  end`

/** A redis-server of its own on a private port, without persistence. */
export class Redis implements AsyncDisposable {
  readonly port = freePort()
  readonly #folder = temporaryFolderInMemory()
  #child: Bun.Subprocess | undefined

  static async start(): Promise<Redis> {
    const redis = new Redis()
    await redis.restart()
    return redis
  }

  get url(): string {
    return `redis://:${PASSWORD}@127.0.0.1:${this.port}`
  }

  /** Starts the server, which has no keys. */
  async restart(): Promise<void> {
    await this.kill()
    const words = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '']
    this.#child = Bun.spawn(['redis-server', ...words, '--requirepass', PASSWORD], {
      cwd: this.#folder.path,
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    await eventually('redis-server answers', async () => {
      if (this.#child?.exitCode !== null) throw new Error('redis-server ended')
      return await this.command('PING').then(
        () => true,
        () => false,
      )
    })
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#child?.exited
  }

  /** Accepts connections, and answers nothing. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** For the windows of the limits: as if so much time had passed. */
  async advance(ms: number): Promise<void> {
    await this.command('EVAL', ADVANCE, '0', String(ms))
  }

  async command(name: string, ...args: readonly string[]): Promise<unknown> {
    const client = this.connect()
    try {
      return await client.send(name, [...args])
    } finally {
      client.close()
    }
  }

  connect(): RedisClient {
    return new RedisClient(this.url, { autoReconnect: false, connectionTimeout: 2000 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    rmSync(this.#folder.path, { recursive: true, force: true })
  }
}
