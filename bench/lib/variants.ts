import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { LoadOptions } from './scenario.ts'
import type { Launch } from './server.ts'

const ROOT = resolve(import.meta.dir, '../..')
const BINARY = join(ROOT, 'dist', 'hopcode')
const BUILD_SCRIPT = join(ROOT, 'scripts', 'build.ts')

/** The same for all rounds, because a new one recreates all QR images. */
export const BASE_URL = 'https://hop.example'

/** The largest budget that the service accepts: the limiter counts, and refuses nothing. */
export const BUDGET_MAX = 1_000_000

export interface Link {
  code: string
  url: string
}

/** The e-mail address of the account in every data folder. */
export const ACCOUNT_EMAIL = 'bench@example.com'

/**
 * The command of the service: `program` if given, with `source` Bun on the source tree, else the
 * compiled binary, built first if it is missing or older than its source.
 */
export async function hopcodeProgram({
  program,
  source,
}: Pick<LoadOptions, 'program' | 'source'>): Promise<string[]> {
  if (program) return [...program]
  if (source) return [process.execPath, join(ROOT, 'src', 'main.ts')]
  if (!existsSync(BINARY) || statSync(BINARY).mtimeMs < newestSourceMs()) {
    const build = Bun.spawn([process.execPath, BUILD_SCRIPT], {
      cwd: ROOT,
      stdout: 'ignore',
      stderr: 'inherit',
    })
    if ((await build.exited) !== 0) throw new Error('the build failed; --source runs without one')
  }
  return [BINARY]
}

function newestSourceMs(): number {
  const files = ['src', 'drizzle'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.endsWith('.test.ts'))
      .map((name) => join(ROOT, folder, name)),
  )
  files.push(join(ROOT, 'package.json'), join(ROOT, 'bun.lock'))
  return Math.max(...files.map((file) => statSync(file).mtimeMs))
}

/** The settings of the service and of its commands, which need no port. */
export function hopcodeSettings(dataDir: string, port: number): Record<string, string> {
  return {
    PORT: String(port),
    HOST: '127.0.0.1',
    BASE_URL,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    ANONYMOUS_READS_PER_MINUTE: String(BUDGET_MAX),
    ANONYMOUS_REDIRECTS_PER_MINUTE: String(BUDGET_MAX),
    ENTERPRISE_READS_PER_MINUTE: String(BUDGET_MAX),
    DASHBOARD_REQUESTS_PER_MINUTE: String(BUDGET_MAX),
    ENTERPRISE_WRITES_PER_MINUTE: String(BUDGET_MAX),
  }
}

/** For scenarios that do not measure the limiter. */
export const WITHOUT_LIMITS: Record<string, string> = {
  ANONYMOUS_READS_PER_MINUTE: '0',
  ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
  ENTERPRISE_READS_PER_MINUTE: '0',
  DASHBOARD_REQUESTS_PER_MINUTE: '0',
  ENTERPRISE_WRITES_PER_MINUTE: '0',
}

/** The service with the data folder `dataDir`. `settings` override `hopcodeSettings`. */
export const hopcode = (
  program: string[],
  dataDir: string,
  settings: Record<string, string> = {},
): Launch => ({
  name: 'hopcode',
  command: () => [...program, 'serve'],
  env: (port) => ({ ...hopcodeSettings(dataDir, port), ...settings }),
  readyPath: '/-/ready',
})

/** A bare Bun.serve route: the cost of Bun itself for the same responses. */
export function bare(folder: string, links: readonly Link[]): Launch {
  const linksFile = join(folder, 'links.json')
  writeFileSync(linksFile, JSON.stringify(links))
  const program = join(ROOT, 'bench', 'load', 'baseline-bare.ts')
  return {
    name: 'bare',
    command: (port) => [process.execPath, program, String(port), linksFile],
    readyPath: '/',
  }
}

/** Headers that nginx adds to a 302; it also has a page of 138 bytes. */
export const NGINX_HEADERS = ['connection', 'content-type', 'server']

/** nginx in one process, with the same codes and headers as a `map`. */
export function nginxMap(folder: string, links: readonly Link[]): Launch {
  const path = join(folder, 'nginx')
  const file = join(path, 'nginx.conf')
  mkdirSync(path)
  return {
    name: 'nginx',
    command: (port) => {
      writeFileSync(file, nginxConfiguration(path, port, links))
      return ['nginx', '-p', path, '-c', file, '-e', join(path, 'error.log')]
    },
    readyPath: '/',
  }
}

function nginxConfiguration(path: string, port: number, links: readonly Link[]): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const mapOf = (name: string, result: (link: Link) => string) =>
    `map $uri $${name} { ${links.map((link) => `"/${link.code}" "${result(link)}";`).join('\n')} }`
  return `
daemon off;
master_process off;
pid ${path}/nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  server_tokens off;
  keepalive_requests 1000000000;
  map_hash_max_size 65536;
  map_hash_bucket_size 128;
  ${temporary.map((name) => `${name}_temp_path ${path}/${name};`).join('\n  ')}
  ${mapOf('url', ({ url }) => url)}
  ${mapOf('code', ({ code }) => code)}
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      if ($url = "") { return 404; }
      add_header Cache-Control no-store;
      add_header X-Service-Code $code;
      add_header X-RateLimit-Limit 1000000;
      add_header X-RateLimit-Remaining 999999;
      add_header X-RateLimit-Reset 1790000000;
      add_header X-Request-Id abcdefgh-12345;
      return 302 $url;
    }
  }
}
`
}
