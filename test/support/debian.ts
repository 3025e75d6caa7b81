import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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

/** Where a program is whose package has its name; undefined where it cannot be had. */
export function findProgram(name: string): string | undefined {
  if (!Bun.which(name)) install(name)
  return Bun.which(name) ?? undefined
}

/** Whether strace may look into a process of ours. Where it cannot, its tests are left out. */
export function canTrace(): boolean {
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

/** The library that sets a program's clock; undefined where it cannot be had. */
export function findFaketime(): string | undefined {
  const find = () => [...new Bun.Glob('usr/lib/*/faketime/libfaketimeMT.so.1').scanSync('/')][0]
  if (find() === undefined) install('faketime')
  const found = find()
  return found && `/${found}`
}
