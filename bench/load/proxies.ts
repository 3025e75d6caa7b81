// What does a proxy in front of the service add to the CPU of a redirect?
// npm run bench -- proxies --seconds 3 --rounds 5
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { untilCounted } from '../lib/counted-hits.ts'
import { measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { HopcodeClient } from '../lib/hopcode-client.ts'
import { sendClosed, sendOwn } from '../lib/load-parts.ts'
import { isInstalled } from '../lib/machine.ts'
import { hopcodeContender, targetsOf } from '../lib/redirect-round.ts'
import type { Figures, Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const OPERATIONS = join(import.meta.dir, '../../docs/operations')
const provided = (name: string) => readFileSync(join(OPERATIONS, name), 'utf8')

/** Programs and their configurations for a service at `host`, without TLS. */
const PROXIES: Record<string, (folder: string, host: string, port: number) => string[]> = {
  nginx(folder, host, port) {
    const server = provided('nginx.conf')
      .replace('server 127.0.0.1:3000;', `server ${host};`)
      .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
      .replace('    listen [::]:443 ssl http2;\n', '')
      .replace(/^ {4}ssl_certificate(_key)? .*\n/gm, '')
    const file = join(folder, 'nginx.conf')
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    writeFileSync(
      file,
      `daemon off; master_process off; pid ${folder}/pid;
       events { worker_connections 4096; }
       http { access_log off;
         ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
         ${server} }`,
    )
    return ['nginx', '-p', folder, '-c', file, '-e', join(folder, 'error.log')]
  },
  haproxy(folder, host, port) {
    const file = join(folder, 'haproxy.cfg')
    const text = provided('haproxy.cfg')
      .replace('    log /dev/log local0\n', '')
      .replace(/bind :443 .*/, `bind 127.0.0.1:${port}`)
      .replaceAll('10.0.0.1:3000', host)
      .replaceAll(/^ +server b .*\n/gm, '')
    writeFileSync(file, text)
    return ['haproxy', '-db', '-f', file]
  },
  caddy(folder, host, port) {
    const file = join(folder, 'Caddyfile')
    const text = provided('Caddyfile')
      .replace('hop.example {', `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {`)
      .replace('127.0.0.1:3000', host)
    writeFileSync(file, text)
    return ['caddy', 'run', '--adapter', 'caddyfile', '--config', file]
  },
}

const KINDS = { kept: 'kept connections', each: 'one connection each' } as const

const METRICS: Metric[] = Object.entries(KINDS).flatMap(([key, label]) => [
  { key: `${key}Micros`, label: `${label}: CPU µs, proxy and service`, digits: 1, ratio: true },
  { key: `${key}P99`, label: `${label}: p99, ms`, digits: 2, ratio: true },
])

export const proxies: Scenario = {
  name: 'proxies',
  question: 'What does a proxy in front of the service add to the CPU of a redirect?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await emptyWorkspace(options)
  const service = await hopcodeContender('hopcode', workspace.program, workspace.dataDir)
  const { launch, links, apiKey, dataDir } = service
  const trusting: Launch = {
    ...launch,
    env: (port) => ({ ...launch.env?.(port), TRUSTED_PROXIES: '127.0.0.1' }),
  }
  const names = Object.keys(PROXIES).filter(isInstalled)
  const measure = async ({ name }: { name: string }): Promise<RoundResult> => {
    await using server = await startServer(name === 'none' ? launch : trusting)
    const client = new HopcodeClient(server.origin, apiKey)
    const settle = async () => void (await untilCounted(client, dataDir))
    const inFront = name === 'none' ? undefined : proxyLaunch(name, workspace.temporaryPath, server)
    await using proxy = inFront && (await startServer(inFront))
    const figures = await measureBoth(proxy ?? server, {
      processes: proxy ? [server, proxy] : [server],
      targets: targetsOf(links),
      settle,
      options,
    })
    await proxy?.kill()
    await server.stop()
    return { figures }
  }
  const plan: Plan<{ name: string }> = {
    variants: [{ name: 'none' }, ...names.map((name) => ({ name }))],
    measure,
    baseline: 'none',
    metrics: METRICS,
    figures: Object.fromEntries(
      names.map((name) => [
        `CPU per redirect behind ${name}, beside none`,
        ratio(name, 'none', 'keptMicros'),
      ]),
    ),
    notes: [
      'The configurations of docs/operations, without TLS.',
      'CPU of all processes, until every hit is counted. Only installed proxies take part.',
      'One connection each: the server closes; the proxy keeps its connections to the service.',
    ],
  }
  return await measureVariants(plan, options, say)
}

function proxyLaunch(name: string, temporaryPath: string, server: Server): Launch {
  const folder = join(temporaryPath, name)
  mkdirSync(folder, { recursive: true })
  const command = (port: number) => PROXIES[name]?.(folder, `127.0.0.1:${server.port}`, port) ?? []
  return { name, command, readyPath: '/-/live' }
}

interface Both {
  processes: readonly Server[]
  targets: ReturnType<typeof targetsOf>
  settle: () => Promise<void>
  options: LoadOptions
}

async function measureBoth(
  at: Server,
  { processes, targets, settle, options: { connections, seconds, warmUp } }: Both,
): Promise<Figures> {
  const figures: Figures = {}
  const load = { targets, connections }
  const loads = {
    kept: (length: number) => sendClosed(at, { ...load, seconds: length }),
    each: (length: number) => sendOwn(at, { ...load, seconds: length, use: 'server closes' }),
  }
  for (const [key, send] of Object.entries(loads)) {
    if (warmUp > 0) await send(warmUp)
    await settle()
    const cpu = () => processes.reduce((sum, one) => sum + one.cpuSeconds(), 0)
    const before = cpu()
    const { answered, latency } = await send(seconds)
    await settle()
    figures[`${key}Micros`] = ((cpu() - before) / answered) * 1e6
    figures[`${key}P99`] = latency.p99 / 1000
  }
  return figures
}
