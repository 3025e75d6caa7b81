import { networkInterfaces } from 'node:os'
import { type App, startApp } from '../app.ts'
import type { Config } from '../config.ts'
import { SECOND, sharedMonotonicClock, wallClock } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { withTimeout } from '../lib/deadline.ts'
import { descriptorsMax } from '../lib/descriptors.ts'
import { ListenError } from '../lib/listen-error.ts'
import { localAddress, urlHost } from '../lib/local-address.ts'
import { createLog, type Log, print } from '../lib/log.ts'
import { LogSink } from '../lib/log-sink.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { secureRandom } from '../lib/random.ts'
import { messageOf, shrinkAfterStart } from '../lib/thread.ts'
import { VERSION } from '../lib/version.ts'
import { SERVICE_FUNCTIONS } from './program.ts'
import { serveCommands } from './socket.ts'

/** Time limit of the whole stop, regardless of clients and the disk. */
const STOP_DEADLINE_MS = 9000
/**
 * Grace period in which open connections may send one more request; its response has
 * `Connection: close`. After that, idle connections are closed.
 */
const KEEP_ALIVE_MS = 500
/** After that, time for requests in flight to finish. */
const GRACE_MS = 5000
/** Time for pending images and password checks, once the data is closed. */
const BACKGROUND_MS = 2000
/** Time for commands in progress. */
const COMMANDS_MS = 500
/** Time to write the last lines of the log. If standard error is blocked, they are dropped. */
const LOG_DRAIN_MS = 500

/** Time for the first certificate, before the start says why there is none. */
const CERTIFICATE_WAIT_S = 60

/** With fewer, threads and files fail one after the other, some with messages of the runtime. */
const DESCRIPTORS_MIN = 64

function requireDescriptors(): void {
  const most = descriptorsMax()
  if (most === undefined || most >= DESCRIPTORS_MIN) return
  throw new DataError(
    `Only ${most} files can be open at once, and the service needs ${DESCRIPTORS_MIN}: ` +
      'raise the limit (ulimit -n, or LimitNOFILE of the unit).',
  )
}

/**
 * Starts the service. Resolves with the function that stops it. That one resolves with false if the
 * stop fails or takes too long: the reason is logged, and uncounted hits stay in the journal.
 */
export async function serve(config: Config): Promise<() => Promise<boolean>> {
  requireDescriptors()
  const sink = new LogSink()
  const log = createLog({
    level: config.logLevel,
    first: { version: VERSION },
    write: (line) => sink.write(line),
  })
  const app = await startApp(config, {
    clock: wallClock,
    monotonic: sharedMonotonicClock(),
    random: secureRandom,
    log,
    logLinesDropped: () => sink.dropped,
  })
  await listenForOperators(app, config)
  // Redirects have priority. Threads that are started later inherit this.
  setThreadPriority('normal')
  shrinkAfterStart()
  const commands = openForCommands(config, app, log)
  welcome(config, app)
  log.info('service.started', {
    version: VERSION,
    base_url: config.baseUrl,
    data_dir: config.dataDir,
    host: config.host,
    port: app.port,
    https_port: app.httpsPort,
    metrics_port: app.operators?.server?.port,
  })
  return async () => {
    log.info('service.stopping')
    await Promise.race([commands?.stop(), Bun.sleep(COMMANDS_MS)])
    const late = `not done after ${STOP_DEADLINE_MS} ms`
    const failure = await withTimeout(STOP_DEADLINE_MS, stop(app), late).then(
      () => undefined,
      messageOf,
    )
    if (failure === undefined) log.info('service.stopped')
    else log.error('service.stop_failed', { hits_waiting: app.hitsWaiting() }, failure)
    await sink.drain(LOG_DRAIN_MS)
    return failure === undefined
  }
}

/** Commands are refused if the disk has no room for the socket; the service runs all the same. */
function openForCommands({ dataDir, host, baseUrl }: Config, app: App, log: Log) {
  try {
    return serveCommands({
      dataDir,
      commands: SERVICE_FUNCTIONS,
      deps: { ...app.administration, baseUrl },
      greeting: { base_url: baseUrl, address: localAddress(host, app.port) },
      log,
    })
  } catch (error) {
    log.error('commands.refused', {}, error)
    return undefined
  }
}

async function stop(app: App): Promise<void> {
  await app.beginStop()
  await app.refuseConnections()
  // Requests on open connections are answered, and those in flight are finished.
  await Bun.sleep(KEEP_ALIVE_MS)
  await app.stopListening(GRACE_MS)
  await app.operators?.server?.stop(true)
  await app.close(BACKGROUND_MS)
}

async function listenForOperators(app: App, { metricsListen }: Config): Promise<void> {
  if (!metricsListen) return
  const { host, port } = metricsListen
  try {
    app.operators?.listen({ hostname: host, port })
  } catch (error) {
    await app.stopListening(0)
    await app.close()
    throw new ListenError({ host, port, cause: error })
  }
}

/**
 * The setup link is a secret: it goes to standard output and never into the log on standard error.
 * A service manager or a container keeps both in one journal, and every reader of that journal can
 * become the owner while the link works. Each start creates a new link until there is an owner.
 */
function welcome(config: Config, app: App): void {
  const { port, httpsPort } = app
  const { baseUrl, host, dataDir } = config
  print(`Hopcode ${VERSION} is running. Press Ctrl+C to stop.`)
  print(`  Short links  ${baseUrl}`)
  print(`  Dashboard    ${baseUrl}/app`)
  print(`  API          ${baseUrl}/docs`)
  print(`  Listens on   http://${urlHost(host)}:${port}`)
  if (httpsPort !== undefined) print(`  and on       https://${urlHost(host)}:${httpsPort}`)
  print(`  Data         ${dataDir}`)
  const address = networkAddress()
  if (isLoopback(new URL(baseUrl).hostname) && address !== undefined) {
    print('Only this machine can open these addresses. For phones in your network, start with:')
    const others = otherSettings(config, port)
    // A shortened one may contain a secret.
    const shown = others.filter(({ isShortened }) => !isShortened)
    const hidden = others.filter(({ isShortened }) => isShortened).map(({ name }) => name)
    const words = shown.map(({ name, value }) => `${name}=${shellWord(value)}`)
    print(`  ${[`BASE_URL=http://${address}:${port}`, ...words, startCommand()].join(' ')}`)
    if (hidden.length > 0) print(`and with ${hidden.join(', ')} as now.`)
  }
  void announceSetup(app)
}

/** The link is of use once there is a certificate. */
async function announceSetup({ setupLink, administration }: App): Promise<void> {
  const { certificates } = administration
  const isMissing = () => certificates !== undefined && certificates.pair === undefined
  if (isMissing()) print('The certificate is being requested: hopcode certificate')
  for (let s = 0; s < CERTIFICATE_WAIT_S && isMissing(); s++) await Bun.sleep(SECOND)
  if (isMissing()) {
    const { names = [], problem } = certificates?.status() ?? {}
    const reason = names.find(({ error }) => error !== undefined)?.error ?? problem ?? ''
    print(`There is no certificate yet. ${reason}`)
  }
  if (!setupLink) return
  print('Create your owner account (this link works once, for 24 hours):')
  print(`  ${setupLink}`)
}

/** Settings of this start in addition to `BASE_URL`. A loopback `HOST` would keep others out. */
const otherSettings = ({ settings }: Config, port: number) =>
  settings
    .filter(({ name, isSet }) => isSet && name !== 'BASE_URL')
    .filter(({ name, value }) => name !== 'HOST' || !isLoopback(urlHost(value)))
    .map((one) => (one.name === 'PORT' ? { ...one, value: String(port) } : one))

const shellWord = (text: string): string =>
  /^[\w./:,+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' || hostname.startsWith('127.') || hostname === '[::1]'

/** The first IPv4 address of this machine in a network; undefined without one. */
function networkAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((some) => some ?? [])
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}

/** The command that starts the service, for messages: the binary, or the npm script. */
function startCommand(): string {
  if (Bun.main.startsWith('/$bunfs/')) return shellWord(process.execPath)
  return Bun.which('npm') ? 'npm start' : 'bun start'
}
