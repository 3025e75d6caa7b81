import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
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
