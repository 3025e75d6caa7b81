/** Starts a program of a release as a new user would, up to the first redirect. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'bun'
import type { configOf } from './image.ts'

type Settings = Readonly<Record<string, string>>

/** How a program is run. */
export interface Runner {
  /** The words of a command that runs the program with these arguments and settings. */
  words: (args: readonly string[], env: Settings) => string[]
  /** Tells the running service to stop. Default: a signal to the process. */
  stop?: () => Promise<unknown>
}

const TARGET = 'https://example.com/first'
const BASE = 'https://hop.example'
const WITHIN_MS = 180_000
/** What runs containers. crun refuses machines with control groups of both versions. */
export const findContainers = () => Bun.which('runc') ?? Bun.which('crun')

async function findAddress(out: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  for await (const bytes of out) {
    text += new TextDecoder().decode(bytes)
    const [, address] = /Listens on +(http:\S+)/.exec(text) ?? []
    if (address) return address
  }
  throw new Error(`it ended before it listened: ${text}`)
}

/** Throws unless the program has this version, creates a link, redirects, and stops. */
export async function startOnce({ words, stop }: Runner, version: string): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'hopcode-release-'))
  const env = { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: '0', BASE_URL: BASE }
  const run = (...args: string[]) => $`${words(args, env)}`.env(env).json()
  const child = Bun.spawn(words(['serve'], env), { env, stdout: 'pipe', stderr: 'pipe' })
  const timer = setTimeout(() => child.kill('SIGKILL'), WITHIN_MS)
  try {
    const url = await findAddress(child.stdout)
    const { version: found } = await run('version', '--json')
    if (found !== version) throw new Error(`it says that it is ${found}`)
    const account = ['account', 'create', '--email', 'a@example.com', '--plan', 'free', '--json']
    const { api_key } = await run(...account)
    const headers = { 'x-api-key': api_key, 'content-type': 'application/json' }
    const body = JSON.stringify({ url: TARGET })
    const created = await fetch(`${url}/api/shorten`, { method: 'POST', headers, body })
    const { code } = (await created.json()) as { code: string }
    const { status, headers: answer } = await fetch(`${url}/${code}`, { redirect: 'manual' })
    if (answer.get('location') !== TARGET) throw new Error(`the short link answers ${status}`)
    await (stop ?? (() => Promise.resolve(child.kill('SIGTERM'))))()
    if ((await child.exited) !== 0) throw new Error(`it stopped with ${child.exitCode}`)
  } catch (error) {
    child.kill('SIGKILL')
    throw new Error(await new Response(child.stderr).text(), { cause: error })
  } finally {
    clearTimeout(timer)
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Unpacks the image for this machine with skopeo. Returns how it is run, as its user. */
export async function containerRunner(archive: string, folder: string): Promise<Runner> {
  const parts = join(folder, 'parts')
  const root = join(folder, 'rootfs')
  mkdirSync(root, { recursive: true })
  await $`skopeo copy --quiet --insecure-policy oci-archive:${archive} dir:${parts}`
  const read = (name: string) => JSON.parse(readFileSync(join(parts, name), 'utf8'))
  const blob = ({ digest }: { digest: string }) => digest.replace('sha256:', '')
  const { config, layers } = read('manifest.json')
  for (const layer of layers) await $`tar -xzf ${join(parts, blob(layer))} -C ${root}`
  const { User, Env, Entrypoint } = read(blob(config)).config as ReturnType<typeof configOf>
  const [uid, gid] = User.split(':').map(Number)
  const containers = findContainers() ?? ''
  const id = `hopcode-release-${process.pid}`
  const words = (args: readonly string[], env: Settings) => {
    const isService = args[0] === 'serve'
    const bundle = join(folder, isService ? 'service' : 'command')
    mkdirSync(bundle, { recursive: true })
    rmSync(join(bundle, 'config.json'), { force: true })
    Bun.spawnSync([containers, 'spec'], { cwd: bundle })
    const spec = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8'))
    const settings = Object.entries({ ...env, DATA_DIR: '/data' }).map(
      ([name, is]) => `${name}=${is}`,
    )
    const user = { uid, gid }
    Object.assign(spec.process, { terminal: false, user, args: [...Entrypoint, ...args] })
    spec.process.env = [...Env, ...settings]
    spec.root = { path: root, readonly: true }
    Bun.spawnSync(['chown', `${uid}:${gid}`, env.DATA_DIR ?? ''])
    spec.mounts.push({
      destination: '/data',
      type: 'bind',
      source: env.DATA_DIR,
      options: ['bind'],
    })
    const isOwn = ({ type }: { type: string }) => type !== 'network'
    spec.linux.namespaces = spec.linux.namespaces.filter(isOwn)
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(spec))
    return [containers, 'run', '--bundle', bundle, isService ? id : `${id}-${args[0]}`]
  }
  return { words, stop: () => $`${containers} kill ${id} TERM` }
}
