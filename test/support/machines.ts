import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from './app.ts'
import { temporaryFolder } from './folder.ts'

/**
 * Several Linux machines inside this one, for guides whose commands change /etc and /var: each has
 * a copy-on-write view of these folders, a name and an address; a network connects them. Only root
 * can start them. All their processes end with the test.
 */

/** A machine writes into these folders only. */
const FOLDERS = ['etc', 'var', 'usr/local']

/** Runs on each machine before the first command. `$1`: its name, `$2`: the folder of all. */
const SET_UP = `
set -e
mkdir -p "$2/$1"
touch "$2/$1/isolated"
for folder in ${FOLDERS.join(' ')}; do
  own="$2/$1/$folder"
  mkdir -p "$own/upper" "$own/work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$own/upper,workdir=$own/work" "/$folder"
done
mount -t tmpfs tmpfs /run
hostname "$1"
cat "$2/hosts" >> /etc/hosts
until ip link show eth0 > /dev/null 2>&1; do sleep 0.02; done
ip addr add "$(sed -n "s/ $1$//p" "$2/hosts")/24" dev eth0
ip link set eth0 up
ip link set lo up
touch "$2/$1/ready"
exec sleep infinity`

/** Starts all machines and connects them. `$1`: the folder of all. */
const START_ALL = `
set -e
ip link add switch type bridge
ip link set switch up
while read -r address name; do
  unshare --mount --uts --net bash "$1/set-up" "$name" "$1" & pid=$!
  echo $pid > "$1/$name.pid"
  until [ -e "$1/$name/isolated" ]; do sleep 0.02; done
  ip link add "port$pid" master switch type veth peer name eth0 netns $pid
  ip link set "port$pid" up
done < "$1/hosts"
wait`

interface MachinesOptions {
  /** Their addresses in one /24, by name. */
  addresses: Readonly<Record<string, string>>
  /** Programs that stand for those of this name, on each machine. */
  programs: Readonly<Record<string, string>>
}

export class Machines implements AsyncDisposable {
  readonly #folder = temporaryFolder()
  readonly #child: Bun.Subprocess

  private constructor({ addresses, programs }: MachinesOptions) {
    const { path } = this.#folder
    const lines = Object.entries(addresses).map(([name, address]) => `${address} ${name}\n`)
    writeFileSync(join(path, 'hosts'), lines.join(''))
    writeFileSync(join(path, 'set-up'), SET_UP)
    mkdirSync(join(path, 'bin'))
    for (const [name, text] of Object.entries({ ...programs, ssh: SSH(path) })) {
      writeFileSync(join(path, 'bin', name), text)
      chmodSync(join(path, 'bin', name), 0o755)
    }
    const isolated = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc']
    const words = ['setpriv', '--pdeathsig=KILL', 'unshare', ...isolated]
    this.#child = Bun.spawn([...words, 'bash', '-c', START_ALL, 'bash', path], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
  }

  static async start(options: MachinesOptions): Promise<Machines> {
    const machines = new Machines(options)
    try {
      for (const name of Object.keys(options.addresses)) {
        await eventually(`${name} runs`, () => {
          if (machines.#child.exitCode !== null) throw new Error('the machines have ended')
          return existsSync(join(machines.#folder.path, name, 'ready'))
        })
      }
    } catch (error) {
      await machines[Symbol.asyncDispose]()
      throw error
    }
    return machines
  }

  /**
   * Runs a script as root with bash, which ends at the first command that fails. Returns what it
   * writes on standard output. `cwd`: a folder that no machine has a view of its own of.
   */
  async run(
    name: string,
    script: string,
    { input = '', cwd = '/' }: { input?: string; cwd?: string } = {},
  ): Promise<string> {
    const { path } = this.#folder
    // Not standard input: a command of the script may read that.
    const file = join(path, `${name}.sh`)
    writeFileSync(file, `set -eo pipefail\ncd ${cwd}\n${script}`)
    const outside = ['nsenter', '-t', String(this.#firstPid()), '--net', '--pid', '--mount']
    const inside = ['nsenter', '-t', this.#pidOf(name), '--mount', '--uts', '--net', 'bash', file]
    const child = Bun.spawn([...outside, ...inside], {
      env: {
        PATH: `${path}/bin:${process.env.PATH}:/usr/local/bin:/usr/sbin:/sbin`,
        HOME: '/root',
      },
      stdin: new Blob([input]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    if (code !== 0) throw new Error(`on ${name}, exit ${code}:\n${script}\n${out}\n${err}`)
    return out
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
    this.#folder[Symbol.dispose]()
  }

  /** The first process in the namespaces, by its id outside. */
  #firstPid(): number {
    const { pid } = this.#child
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim())
  }

  #pidOf(name: string): string {
    return readFileSync(join(this.#folder.path, `${name}.pid`), 'utf8').trim()
  }
}

/** `ssh NAME COMMAND`, without a connection. */
const SSH = (folder: string): string => `#!/bin/bash
name="$1"; shift
exec nsenter -t "$(cat "${folder}/$name.pid")" --mount --uts --net bash -c "$*"
`
