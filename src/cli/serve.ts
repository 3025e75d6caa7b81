import { resolve } from 'node:path'
import { type App, buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { monotonicClock, wallClock } from '../lib/clock.ts'
import { createLog, print } from '../lib/log.ts'
import { secureRandom } from '../lib/random.ts'
import { messageOf } from '../lib/thread.ts'
import { CommandError } from './command-error.ts'

/** How long requests in flight may take to end after a stop. */
const GRACE_MS = 5000

/** Starts the service. Resolves with the function that stops it. */
export async function serve(config: Config): Promise<() => Promise<void>> {
  const log = createLog({ level: config.logLevel })
  const app = await buildApp(config, {
    clock: wallClock,
    monotonic: monotonicClock,
    random: secureRandom,
    log,
  })
  await listen(app, config)
  welcome(config, app)
  return async () => {
    log.info('service.stopping')
    await stopListening(app)
    await app.close()
    log.info('service.stopped')
  }
}

async function listen(app: App, { host, port }: Config): Promise<void> {
  try {
    app.http.listen({ hostname: host, port })
  } catch (error) {
    await app.close()
    throw new CommandError(`cannot listen on ${host}:${port}: ${messageOf(error)}`)
  }
}

/** Takes no new connection, lets requests in flight end, and cuts off those that do not. */
async function stopListening({ http }: App): Promise<void> {
  const { server } = http
  if (!server) return
  const ended = server.stop()
  await Promise.race([ended, Bun.sleep(GRACE_MS)])
  await server.stop(true)
}

function welcome({ baseUrl, host, dataDir }: Config, { fresh, http }: App): void {
  print(`Hopcode listens on http://${host}:${http.server?.port} as ${baseUrl}`)
  print(`API page: ${baseUrl}/docs`)
  if (fresh) {
    const folder = dataDir === resolve('data') ? '' : `DATA_DIR=${dataDir} `
    print('No account yet. Make one and see its API key:')
    print(`  ${folder}${program()} account create --email you@example.com --plan free`)
  }
}

/** How this program was started, for a command to copy: the binary, or Bun with its script. */
function program(): string {
  if (Bun.main.startsWith('/$bunfs/')) return process.execPath
  return Bun.which('npm') ? 'npm run hopcode --' : 'bun run hopcode'
}
