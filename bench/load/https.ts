// What does a redirect over https cost, compared with nginx in front of the service, and alone?
// npm run bench -- redirect --https --seconds 3 --rounds 5
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCertificate } from '../../test/support/certificates.ts'
import { freePort } from '../../test/support/ports.ts'
import { atMost, main, measureVariants, type Plan, ratio } from '../lib/figures.ts'
import { tieToThisProcess } from '../lib/leftovers.ts'
import { CORES, isInstalled } from '../lib/machine.ts'
import { hopcodeContender } from '../lib/redirect-round.ts'
import type { Figures, Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Metric, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { nginxMap } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

export const https: Scenario = {
  name: 'https',
  question: 'What does a redirect over https cost, with the service alone and with nginx?',
  run,
}

const NGINX = readFileSync(join(import.meta.dir, '../../docs/operations/nginx.conf'), 'utf8')
const HOST = 'hop.example'

const METRICS: Metric[] = [
  { key: 'keptMicros', label: 'kept connections: CPU µs per redirect', digits: 2, ratio: true },
  { key: 'fullMicros', label: 'one connection each: CPU µs per redirect', digits: 1, ratio: true },
]

interface Variant {
  name: 'hopcode' | 'nginx' | 'nginx map' | 'plain'
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  for (const tool of ['nginx', 'wrk']) {
    if (!isInstalled(tool)) throw new Error(`${tool} is not installed`)
  }
  using workspace = await emptyWorkspace(options)
  const service = await hopcodeContender('hopcode', workspace.program, workspace.dataDir)
  const { launch, links } = service
  const folder = join(workspace.temporaryPath, 'tls')
  mkdirSync(folder)
  const files = createCertificate(folder, [`DNS:${HOST}`])
  const path = `/${links[0]?.code}`
  const measure = async ({ name }: Variant): Promise<RoundResult> => {
    const tlsPort = freePort()
    const hopcode: Launch = {
      ...launch,
      env: (port) => ({
        ...launch.env?.(port),
        ...(name === 'nginx' && { TRUSTED_PROXIES: '127.0.0.1' }),
        ...(name === 'hopcode' && {
          BASE_URL: `https://${HOST}`,
          HTTPS_PORT: String(tlsPort),
          TLS_CERT_FILE: files.certificate,
          TLS_KEY_FILE: files.key,
        }),
      }),
    }
    await using first = await startServer(
      name === 'nginx map' ? overTls(nginxMap(newFolder(folder), links), tlsPort, files) : hopcode,
    )
    await using proxy =
      name === 'nginx'
        ? await startServer(nginxBefore(first, { folder: newFolder(folder), tlsPort, files }))
        : undefined
    const origin =
      name === 'plain' ? `http://127.0.0.1:${first.port}` : `https://127.0.0.1:${tlsPort}`
    const servers = proxy ? [first, proxy] : [first]
    return { figures: await measureBoth(origin + path, servers, options) }
  }
  const bounds = { keptMicros: [0.5, 1.35], fullMicros: [0.9, 1.25] } as const
  const plan: Plan<Variant> = {
    variants: [{ name: 'plain' }, { name: 'hopcode' }, { name: 'nginx' }, { name: 'nginx map' }],
    measure,
    baseline: 'plain',
    metrics: METRICS,
    figures: Object.fromEntries(
      METRICS.flatMap(({ key, label }) => {
        const [proxy, map] = bounds[key as keyof typeof bounds]
        return [
          [
            `${label}, beside nginx and the service`,
            main(ratio('hopcode', 'nginx', key, atMost(proxy))),
          ],
          [
            `${label}, beside nginx with a map`,
            main(ratio('hopcode', 'nginx map', key, atMost(map))),
          ],
        ]
      }),
    ),
    notes: [
      `One redirect thread. wrk with TLS of OpenSSL (X25519), ${CORES} cores.`,
      'One connection each: a whole handshake for each redirect.',
    ],
  }
  return await measureVariants(plan, options, say)
}

let folders = 0
function newFolder(parent: string): string {
  const path = join(parent, String(folders++))
  mkdirSync(path)
  return path
}

type Files = ReturnType<typeof createCertificate>

/** The ports of a configuration of nginx, with TLS. */
const ssl = ({ certificate, key }: Files) =>
  `ssl_certificate ${certificate}; ssl_certificate_key ${key}; ssl_protocols TLSv1.2 TLSv1.3;`

/** nginx that answers itself: also on a port with TLS. */
function overTls(launch: Launch, tlsPort: number, files: Files): Launch {
  return {
    ...launch,
    command: (port) => {
      const words = launch.command(port)
      const file = words[words.indexOf('-c') + 1] ?? ''
      const text = readFileSync(file, 'utf8').replace(
        / {4}listen .*;/,
        (listen) => `${listen}\n listen 127.0.0.1:${tlsPort} ssl backlog=4096; ${ssl(files)}`,
      )
      writeFileSync(file, text)
      return words
    },
  }
}

interface ProxyOptions {
  folder: string
  tlsPort: number
  files: Files
}

/** The provided configuration. */
function nginxBefore(service: Server, { folder, tlsPort, files }: ProxyOptions): Launch {
  const command = (port: number) => {
    const server = NGINX.replace('server 127.0.0.1:3000;', `server 127.0.0.1:${service.port};`)
      .replace(
        'listen 443 ssl http2;',
        `listen 127.0.0.1:${tlsPort} ssl; listen 127.0.0.1:${port};`,
      )
      .replace('    listen [::]:443 ssl http2;\n', '')
      .replace(/^ {4}ssl_certificate .*\n/m, `    ${ssl(files)}\n`)
      .replace(/^ {4}ssl_certificate_key .*\n/m, '')
    const file = join(folder, 'nginx.conf')
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    writeFileSync(
      file,
      `daemon off; master_process off; pid ${folder}/pid;
       events { worker_connections 4096; }
       http { access_log off; keepalive_requests 1000000000;
         ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
         ${server} }`,
    )
    return ['nginx', '-p', folder, '-c', file, '-e', join(folder, 'error.log')]
  }
  return { name: 'nginx', command, readyPath: '/-/live' }
}

async function measureBoth(
  url: string,
  servers: readonly Server[],
  { seconds, warmUp, connections }: LoadOptions,
): Promise<Figures> {
  const figures: Figures = {}
  const cpu = () => servers.reduce((sum, one) => sum + one.cpuSeconds(), 0)
  for (const [key, headers] of Object.entries({ kept: [], full: ['-H', 'Connection: close'] })) {
    if (warmUp > 0) await load(url, { seconds: warmUp, connections, headers })
    await Bun.sleep(500)
    const before = cpu()
    const answered = await load(url, { seconds, connections, headers })
    // Hits are counted a little later.
    await Bun.sleep(1000)
    figures[`${key}Micros`] = ((cpu() - before) / answered) * 1e6
  }
  return figures
}

interface Load {
  seconds: number
  connections: number
  headers: readonly string[]
}

/** Returns the number of redirects. Throws if one failed. */
async function load(url: string, { seconds, connections, headers }: Load): Promise<number> {
  const words = ['-t1', `-c${connections}`, `-d${Math.ceil(seconds)}s`, '-H', `Host: ${HOST}`]
  const child = Bun.spawn(['wrk', ...words, ...headers, url], { stdout: 'pipe', stderr: 'inherit' })
  tieToThisProcess(child)
  const [text] = await Promise.all([new Response(child.stdout).text(), child.exited])
  const answered = Number(/(\d+) requests in/.exec(text)?.[1] ?? 0)
  if (answered === 0 || /Non-2xx/.test(text)) throw new Error(`wrk said: ${text}`)
  return answered
}
