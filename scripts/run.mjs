/**
 * Installs the packages of bun.lock and runs the pinned Bun with this script's arguments. Plain
 * JavaScript without packages, because it runs before the installation: with Node 20 or newer, or
 * with Bun, which can replace `node`.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const MODULES = join(ROOT, 'node_modules')
const STAMP = join(MODULES, '.installed-from')
const LOCK = join(MODULES, '.installing')
const MANIFEST = readJson(join(ROOT, 'package.json'))
const BUN_VERSION = MANIFEST.packageManager.replace(/^bun@/, '')

/** These commands change the packages, so nothing is installed before them. */
const PACKAGE_COMMANDS = ['install', 'add', 'remove', 'update']
const LOCK_STALE_MS = 10 * 60_000
/** Ctrl-C in a terminal arrives twice: from the terminal, and again from npm. */
const ECHO_MS = 1000
const PARENT_CHECK_MS = 500
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

class StartError extends Error {}

/** The process id of the running program, negative if it leads a process group. */
let running
let stopSignal
const lastSent = new Map()

for (const signal of FORWARDED) process.on(signal, () => forward(signal))
if (process.env.npm_lifecycle_event) watchParent()
try {
  await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof StartError)) throw error
  console.error(`Cannot start: ${error.message}`)
  process.exit(1)
}

async function main(args) {
  const packages = platformPackages()
  const bun = PACKAGE_COMMANDS.includes(args[0])
    ? (findPinned(packages) ?? (await findInstaller(packages)).path)
    : await installedBun(packages)
  if (stopSignal) return dieOf(stopSignal)
  // In a terminal the child gets its own session, so that it receives Ctrl-C once, from us.
  // Otherwise it stays in our process group, so that killing the group leaves no orphan.
  const detached = process.stdin.isTTY === true
  const { code, signal } = await run(bun, args, { stdio: 'inherit', detached })
  if (signal) dieOf(signal)
  else process.exit(code)
}

/** The packages that may contain Bun for this machine, the likeliest first. */
function platformPackages() {
  const arch = { x64: 'x64', arm64: 'aarch64' }[process.arch]
  if (!arch || !['linux', 'darwin'].includes(process.platform)) {
    const here = `${process.platform}-${process.arch}`
    throw new StartError(`Hopcode runs on Linux and macOS, x64 or arm64, and this is ${here}.`)
  }
  const name = `@oven/bun-${process.platform}-${arch}`
  if (process.platform === 'darwin') return [name]
  return isMusl() ? [`${name}-musl`, name] : [name, `${name}-musl`]
}

function isMusl() {
  return process.report.getReport().header.glibcVersionRuntime === undefined
}

/** The pinned Bun under node_modules, or undefined. */
function findPinned(packages) {
  for (const name of packages) {
    const folder = join(MODULES, name)
    const binary = join(folder, 'bin', 'bun')
    if (versionIn(folder) === BUN_VERSION && fs.existsSync(binary)) return binary
  }
  return undefined
}

/** The pinned Bun, after an installation if node_modules differs from package.json or bun.lock. */
async function installedBun(packages) {
  if (!isInstalled(packages)) {
    await claimLock()
    try {
      if (!stopSignal && !isInstalled(packages)) await install(packages)
    } finally {
      // After a stop the lock stays: it shows the next start that the installation is incomplete.
      if (!stopSignal) fs.rmSync(LOCK, { force: true })
    }
  }
  if (stopSignal) return undefined
  const pinned = findPinned(packages)
  if (pinned) return pinned
  // The user's npm settings may switch optional packages off.
  if (process.versions.bun === BUN_VERSION) return process.execPath
  throw new StartError(`${packages[0]} was not installed: optional packages are switched off.`)
}

function isInstalled(packages) {
  if (readText(STAMP) !== fingerprint() || !findPinned(packages)) return false
  const direct = Object.entries({ ...MANIFEST.dependencies, ...MANIFEST.devDependencies })
  return direct.every(([name, version]) => versionIn(join(MODULES, name)) === version)
}

async function install(packages) {
  const isFresh = !fs.existsSync(STAMP)
  if (isFresh) console.error('Installing packages from bun.lock ...')
  const { path, version } = await findInstaller(packages)
  if (stopSignal) return
  const { code, output } = await run(path, ['install', '--frozen-lockfile'])
  if (stopSignal) return
  if (code !== 0) {
    const hint = version === BUN_VERSION ? '' : ` (with Bun ${version}; ${BUN_VERSION} is pinned)`
    throw new StartError(`packages cannot be installed${hint}: ${reasonIn(output)}`)
  }
  const installed = /\d+ packages? installed/.exec(output)
  if (!isFresh && installed) console.error(`Installing packages from bun.lock: ${installed[0]}.`)
  fs.writeFileSync(STAMP, fingerprint())
}

/** A Bun that reads bun.lock: the pinned one, the running one, one on PATH, or a download. */
async function findInstaller(packages) {
  const pinned = findPinned(packages)
  if (pinned) return { path: pinned, version: BUN_VERSION }
  if (process.versions.bun) return { path: process.execPath, version: process.versions.bun }
  const { code, output } = await run('bun', ['--version'])
  const version = output.trim()
  if (code === 0 && hasTextLockfile(version)) return { path: 'bun', version }
  return { path: await downloadBun(packages[0]), version: BUN_VERSION }
}

/** Bun reads bun.lock since 1.2. */
function hasTextLockfile(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 1 || (major === 1 && minor >= 2)
}

/** Downloads the platform's package with npm, verifies it with bun.lock, and installs it. */
async function downloadBun(name) {
  const folder = join(MODULES, '.download')
  const npm = process.env.npm_execpath?.endsWith('npm-cli.js')
    ? [process.execPath, process.env.npm_execpath]
    : ['npm']
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  // With npm's default pauses between attempts, an offline start would fail only after a minute.
  const retries = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000']
  try {
    fs.mkdirSync(folder, { recursive: true })
    const { code, output, missing } = await run(npm[0], [
      ...npm.slice(1),
      'install',
      '--prefix',
      folder,
      ...flags,
      ...retries,
      `${name}@${BUN_VERSION}`,
    ])
    if (stopSignal) return undefined
    if (missing) {
      throw new StartError(`install Node 20 with npm, or Bun ${BUN_VERSION}: neither is on PATH.`)
    }
    if (code !== 0) throw new StartError(`Bun cannot be downloaded: ${reasonIn(output)}`)
    checkIntegrity(name, join(folder, 'node_modules'))
    fs.rmSync(join(MODULES, name), { recursive: true, force: true })
    fs.mkdirSync(dirname(join(MODULES, name)), { recursive: true })
    fs.renameSync(join(folder, 'node_modules', name), join(MODULES, name))
    return join(MODULES, name, 'bin', 'bun')
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** npm has compared the package with the registry's hash; this compares it with bun.lock. */
function checkIntegrity(name, modules) {
  const lock = readText(join(ROOT, 'bun.lock')) ?? ''
  const line = lock.split('\n').find((text) => text.includes(`["${name}@${BUN_VERSION}"`))
  const expected = /"(sha512-[^"]+)"/.exec(line ?? '')?.[1]
  const found = readJson(join(modules, '.package-lock.json')).packages[`node_modules/${name}`]
  if (!expected || found?.integrity !== expected) {
    throw new StartError(`${name}@${BUN_VERSION} is not the package that bun.lock names.`)
  }
}

/**
 * Waits until no other start is installing. After an interrupted installation, packages may be
 * incomplete: node_modules is emptied.
 */
async function claimLock() {
  let isTold = false
  while (!stopSignal) {
    try {
      fs.mkdirSync(MODULES, { recursive: true })
      fs.writeFileSync(LOCK, String(process.pid), { flag: 'wx' })
      return
    } catch (error) {
      if (error.code !== 'EEXIST') throw new StartError(`${MODULES} cannot be written.`)
    }
    const owner = readText(LOCK)
    if (owner === undefined) continue
    if (isAbandoned(owner)) {
      for (const name of fs.readdirSync(MODULES)) {
        fs.rmSync(join(MODULES, name), { recursive: true, force: true })
      }
      continue
    }
    if (!isTold) console.error(`Waiting for another install (process ${owner}) ...`)
    isTold = true
    await sleep(100)
  }
}

/** An empty `owner`: a process has created the file and is about to write its process id. */
function isAbandoned(owner) {
  const age = Date.now() - (fs.statSync(LOCK, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
  return age > LOCK_STALE_MS || (owner !== '' && !isAlive(Number(owner)))
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/**
 * Runs a program to its end. By default its output is collected in `output`. `missing`: there is no
 * such program.
 */
function run(command, args, { stdio = ['ignore', 'pipe', 'pipe'], detached = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, stdio, detached })
    running = detached ? -child.pid : child.pid
    let output = ''
    const collect = (bytes) => {
      output += bytes
    }
    child.stdout?.on('data', collect)
    child.stderr?.on('data', collect)
    child.on('error', (error) => {
      running = undefined
      if (error.code === 'ENOENT') resolve({ code: 127, signal: null, output, missing: true })
      else reject(new StartError(`${command} cannot be run: ${error.code ?? error.message}.`))
    })
    child.on('close', (code, signal) => {
      running = undefined
      resolve({ code: code ?? 1, signal, output, missing: false })
    })
  })
}

function forward(signal) {
  stopSignal ??= signal
  const now = performance.now()
  const isEcho = now - (lastSent.get(signal) ?? Number.NEGATIVE_INFINITY) < ECHO_MS
  if (isEcho || !running) return
  lastSent.set(signal, now)
  process.kill(running, signal)
}

/** Stops the program if the package manager is killed, so that the port is released. */
function watchParent() {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    forward('SIGTERM')
  }, PARENT_CHECK_MS)
  watch.unref()
}

/** Exits with the child's signal, so that a shell or npm sees it. */
function dieOf(signal) {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100)
}

/** The line of a package manager's output with the reason of its failure. */
function reasonIn(output) {
  const network =
    /\b(E(?:NOTFOUND|AI_AGAIN|CONN\w+|TIMEDOUT|NETUNREACH|HOSTUNREACH)|DNS\w+|Connection\w+)\b/
  const unreachable = network.exec(output)
  if (unreachable) return `the package registry cannot be reached (${unreachable[1]}).`
  const line = output.split('\n').find((text) => /error/i.test(text)) ?? 'no reason was given'
  return `${line.replace(/^(npm )?error:?\s*/i, '').trim()}.`
}

/** A hash of everything an installation depends on: when it changes, node_modules is outdated. */
function fingerprint() {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}\n`)
  for (const name of ['package.json', 'bun.lock']) hash.update(readText(join(ROOT, name)) ?? '')
  return hash.digest('hex')
}

function versionIn(folder) {
  return readJson(join(folder, 'package.json'))?.version
}

/** Undefined if the file is missing or incomplete. */
function readJson(file) {
  try {
    return JSON.parse(readText(file) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

function readText(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  }
}
