import { test } from 'bun:test'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { canMount } from '../durability/lib/small-disk.ts'
import { findPostgres } from './postgres.ts'

/** What some tests need beyond Bun. A test whose tool is missing is skipped and listed. */

interface Tool {
  isThere: () => boolean
  /** What to do where it is missing. */
  install: string
}

const program = (name: string, packageName = name): Tool => ({
  isThere: () => findProgram(name, packageName) !== undefined,
  install: `apt-get install ${packageName}`,
})

const NOTO_PACKAGES = ['fonts-noto-core', 'fonts-noto-cjk']
/** Folders of the packages. */
export const NOTO_FONTS = ['/usr/share/fonts/truetype/noto', '/usr/share/fonts/opentype/noto']

const TOOLS = {
  browser: {
    isThere: () => findBrowser() !== undefined,
    install: 'apt-get install chromium fonts-liberation, or set CHROMIUM to the path of a browser',
  },
  firefox: program('firefox-esr'),
  strace: {
    isThere: canTrace,
    install: 'apt-get install strace, and run the tests as root',
  },
  faketime: { isThere: () => findFaketime() !== undefined, install: 'apt-get install faketime' },
  sqlite3: program('sqlite3'),
  openssl: program('openssl'),
  sslscan: program('sslscan'),
  certutil: program('certutil', 'libnss3-tools'),
  pebble: {
    isThere: () => findPebble() !== undefined,
    install: 'install Go 1.24 or newer, and run scripts/pebble.sh',
  },
  'python clients': {
    isThere: () => findPythonClients() !== undefined,
    install: 'install Python 3.10 or newer with pip, and run scripts/python-clients.sh',
  },
  nginx: program('nginx', 'nginx-light'),
  curl: program('curl'),
  'dpkg-deb': program('dpkg-deb', 'dpkg'),
  haproxy: program('haproxy'),
  varnish: program('varnishd', 'varnish'),
  pgbouncer: program('pgbouncer'),
  wrk: program('wrk'),
  pdftoppm: program('pdftoppm', 'poppler-utils'),
  mutool: program('mutool', 'mupdf-tools'),
  zbarimg: program('zbarimg', 'zbar-tools'),
  'rsvg-convert': program('rsvg-convert', 'librsvg2-bin'),
  imagemagick: program('convert', 'imagemagick'),
  cairosvg: program('cairosvg'),
  'hb-shape': program('hb-shape', 'libharfbuzz-bin'),
  'Noto fonts': {
    isThere: () => {
      if (!NOTO_FONTS.every((path) => existsSync(path))) install(...NOTO_PACKAGES)
      return NOTO_FONTS.every((path) => existsSync(path))
    },
    install: `apt-get install ${NOTO_PACKAGES.join(' ')}`,
  },
  zsh: program('zsh'),
  fish: program('fish'),
  postgres: {
    isThere: () => {
      if (findPostgres() === undefined) install('postgresql')
      return findPostgres() !== undefined
    },
    install: 'apt-get install postgresql',
  },
  // An install of its package would start a Prometheus.
  promtool: {
    isThere: () => Bun.which('promtool') !== null,
    install: 'apt-get install prometheus',
  },
  'the right to mount a file system': { isThere: canMount, install: 'run the tests as root' },
  root: { isThere: () => process.getuid?.() === 0, install: 'run the tests as root' },
} satisfies Record<string, Tool>

type ToolName = keyof typeof TOOLS

const ROOT = join(import.meta.dir, '../..')

/** `scripts/test.ts` names a file here that collects what is missing, one JSON line each. */
export interface MissingTool {
  tool: string
  install: string
  /** The test file that needs it. */
  file: string
}

/** `WITHOUT_TOOLS=strace,browser` has them count as missing. */
const isHidden = (name: ToolName): boolean =>
  (process.env.WITHOUT_TOOLS ?? '').split(',').includes(name)

/** Installs the tool if it is missing and this user may. */
export const hasTool = (name: ToolName): boolean => !isHidden(name) && TOOLS[name].isThere()

/** Declares tests that need the tools: where one is missing, they are skipped and listed. */
export function testWith(...names: readonly ToolName[]): ReturnType<typeof test.if> {
  const missing = names.filter((name) => !hasTool(name))
  const list = process.env.MISSING_TOOLS_FILE
  for (const tool of list ? missing : []) {
    const { install } = TOOLS[tool]
    const line: MissingTool = { tool, install, file: relative(ROOT, Bun.main) }
    appendFileSync(list ?? '', `${JSON.stringify(line)}\n`)
  }
  return test.if(missing.length === 0)
}

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome']
const BROWSER_FILES = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/opt/google/chrome/chrome',
  '/snap/bin/chromium',
]

/** Two of apt-get at a time would fail: a test file waits for another's, and for anybody else's. */
const WAIT_SECONDS = '600'
const APT_LOCK = join(tmpdir(), 'hopcode-tests.apt-lock')
const INSTALL = `
  apt() { apt-get -qq -o DPkg::Lock::Timeout=${WAIT_SECONDS} "$@"; }
  apt install -y --no-install-recommends "$@" ||
    { apt update && apt install -y --no-install-recommends "$@"; }`

/** Installs packages, once, where that can be done: as root, on Debian and its like. */
export function install(...packages: string[]): void {
  if (process.getuid?.() !== 0 || !Bun.which('apt-get')) return
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const words = ['flock', '--timeout', WAIT_SECONDS, APT_LOCK, 'sh', '-c', INSTALL, 'sh']
  Bun.spawnSync([...words, ...packages], { env, stdio: ['ignore', 'ignore', 'ignore'] })
}

/** The path of a program; undefined if it cannot be installed. */
function findProgram(name: string, packageName = name): string | undefined {
  if (!Bun.which(name)) install(packageName)
  return Bun.which(name) ?? undefined
}

/** Whether strace may look into a process of ours. */
function canTrace(): boolean {
  if (!findProgram('strace')) return false
  return process.getuid?.() === 0 || tracingIsFree()
}

/** Debian's Yama lets only root attach to a process that is no child. */
function tracingIsFree(): boolean {
  try {
    return readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8').trim() === '0'
  } catch {
    return true
  }
}

/** The folder of the test authority and its DNS server; undefined if they cannot be built. */
export const findPebble = (): string | undefined => folderFrom('pebble.sh')

/** The folder of clients in Python; undefined if they cannot be installed. */
export const findPythonClients = (): string | undefined => folderFrom('python-clients.sh')

/** The folder that a script prints. */
function folderFrom(name: string): string | undefined {
  const script = join(ROOT, 'scripts', name)
  const { stdout, exitCode } = Bun.spawnSync(['bash', script], { stderr: 'ignore' })
  return exitCode === 0 ? stdout.toString().trim() : undefined
}

/** The library that sets a program's clock; undefined if it cannot be installed. */
export function findFaketime(): string | undefined {
  const find = () => [...new Bun.Glob('usr/lib/*/faketime/libfaketimeMT.so.1').scanSync('/')][0]
  if (find() === undefined) install('faketime')
  const found = find()
  return found && `/${found}`
}

/** A Chromium or Chrome: what `CHROMIUM` names, else one that is installed. */
export function findBrowser(): string | undefined {
  const named = process.env.CHROMIUM
  if (named) return existsSync(named) ? named : undefined
  const found = installedBrowser()
  if (found) return found
  install('chromium', 'fonts-liberation')
  return installedBrowser()
}

function installedBrowser(): string | undefined {
  for (const name of BROWSERS) {
    const path = Bun.which(name)
    if (path) return path
  }
  return BROWSER_FILES.find((path) => existsSync(path)) ?? playwrightsOwn()
}

/** What `npx playwright install chromium` has put in its cache. */
function playwrightsOwn(): string | undefined {
  const cache =
    process.env.PLAYWRIGHT_BROWSERS_PATH ?? join(process.env.HOME ?? '/', '.cache/ms-playwright')
  if (!existsSync(cache)) return undefined
  const [path] = [
    ...new Bun.Glob('chromium-*/chrome-linux*/chrome').scanSync({ cwd: cache }),
  ].sort()
  return path && join(cache, path)
}
