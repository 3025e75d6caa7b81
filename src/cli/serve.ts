import { resolve } from 'node:path'
import { type App, buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { monotonicClock, wallClock } from '../lib/clock.ts'
import { shrinkAfterStart } from '../lib/footprint.ts'
import { createLog, print } from '../lib/log.ts'
import { LogSink } from '../lib/log-sink.ts'
import { secureRandom } from '../lib/random.ts'
import { messageOf } from '../lib/thread.ts'
import { VERSION } from '../lib/version.ts'
import { CommandError } from './command-error.ts'

/** How long requests in flight may take to end after a stop. */
const GRACE_MS = 5000
/**
 * Requests that the kernel holds and nobody has read yet look like idle connections, which a stop
 * closes: they are read first.
 */
const READ_FIRST_MS = 200
/** The same for images and passwords, once the data is closed. */
const BEHIND_MS = 2000
/** The last lines of a log that nobody reads are given up. */
const LOG_DRAIN_MS = 500

/** Starts the service. Resolves with the function that stops it. */
export async function serve(config: Config): Promise<() => Promise<void>> {
  const sink = new LogSink()
  const log = createLog({ level: config.logLevel, write: (line) => sink.write(line) })
  const app = await buildApp(config, {
    clock: wallClock,
    monotonic: monotonicClock,
    random: secureRandom,
    log,
    logLinesDropped: () => sink.dropped,
  })
  await listen(app, config)
  shrinkAfterStart()
  welcome(config, app)
  log.info('service.started', {
    ...{ version: VERSION, base_url: config.baseUrl, data_dir: config.dataDir },
    ...{ host: config.host, port: app.http.server?.port },
    metrics_port: app.operators?.server?.port,
  })
  return async () => {
    log.info('service.stopping')
    app.beginStop()
    await Bun.sleep(READ_FIRST_MS)
    await stopListening(app)
    await app.operators?.server?.stop(true)
    await app.close(BEHIND_MS)
    log.info('service.stopped')
    await sink.drain(LOG_DRAIN_MS)
  }
}

async function listen(app: App, { host, port, metricsListen }: Config): Promise<void> {
  let address = `${host}:${port}`
  try {
    app.http.listen({ hostname: host, port })
    if (!metricsListen) return
    address = `${metricsListen.host}:${metricsListen.port}`
    app.operators?.listen({ hostname: metricsListen.host, port: metricsListen.port })
  } catch (error) {
    await app.http.server?.stop(true)
    await app.close()
    throw new CommandError(`cannot listen on ${address}: ${messageOf(error)}`)
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

/**
 * The link is a secret: it goes to standard output, and no line of the log on standard error holds
 * it. A service manager or a container keeps both in one journal: whoever reads that can become the
 * owner while the link works. Each start makes a new one until there is an owner.
 */
function welcome({ baseUrl, host, dataDir }: Config, { fresh, setupLink, http }: App): void {
  print(`Hopcode listens on http://${host}:${http.server?.port} as ${baseUrl}`)
  print(`API page: ${baseUrl}/docs`)
  if (setupLink) {
    print('Dashboard: make the owner’s account in a browser. This link opens once, for 24 hours:')
    print(`  ${setupLink}`)
  } else {
    print(`Dashboard: ${baseUrl}/app`)
  }
  if (fresh) {
    const folder = dataDir === resolve('data') ? '' : `DATA_DIR=${dataDir} `
    print('No account yet. Without a browser, make one here and see its API key:')
    print(`  ${folder}${program()} account create --email you@example.com --plan free`)
  }
}

/** How this program was started, for a command to copy: the binary, or Bun with its script. */
function program(): string {
  if (Bun.main.startsWith('/$bunfs/')) return process.execPath
  return Bun.which('npm') ? 'npm run hopcode --' : 'bun run hopcode'
}
