import { expect } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { binary } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { blocksOf, JOURNALCTL, OPERATIONS, SYSTEMCTL } from '../support/install-guide.ts'
import { findPostgres } from '../support/postgres.ts'
import { testWith } from '../support/tools.ts'

/** The commands of the guides, in their order, on five machines. */

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

class Machines implements AsyncDisposable {
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

const ADDRESSES = {
  'db.internal': '10.0.0.8',
  'host-a': '10.0.0.1',
  'host-b': '10.0.0.2',
  'host-c': '10.0.0.3',
  balancer: '10.0.0.5',
}
const HOSTS = ['host-a', 'host-b', 'host-c'] as const
const PASSWORD = `it's 100% "p@ss/w#rd?" $HOME`

/** A machine with a new PostgreSQL, as the package of Debian leaves it. */
const NEW_POSTGRES = (version: string) => `
rm -rf /etc/postgresql/* /var/lib/postgresql/*
pg_createcluster ${version} main
mkdir -p /run/postgresql && chown postgres /run/postgresql
pg_ctlcluster ${version} main start`

testWith(
  'postgres',
  'curl',
  'root',
  'the right to mount a file system',
)(
  'the guide leads from a host to three, with TLS to PostgreSQL and a password with signs',
  async () => {
    using folder = temporaryFolder()
    // The source tree from which the guide installs.
    mkdirSync(join(folder.path, 'dist'))
    symlinkSync(await binary(), join(folder.path, 'dist/hopcode'))
    symlinkSync(join(OPERATIONS, '..'), join(folder.path, 'docs'))
    await using machines = await Machines.start({
      addresses: ADDRESSES,
      programs: { systemctl: SYSTEMCTL, journalctl: JOURNALCTL },
    })
    const run = (name: string, script: string, input = '') =>
      machines.run(name, script, { input, cwd: folder.path })

    const version = /postgresql\/(\d+)\/bin/.exec(findPostgres() ?? '')?.[1] ?? ''
    await run('db.internal', NEW_POSTGRES(version))
    const [certificate = '', user = ''] = blocksOf('cluster.md', '### On PostgreSQL')
    await run('db.internal', certificate)
    const encoded =
      (await run('db.internal', user, `${PASSWORD}\n`)).trim().split('\n').at(-1) ?? ''
    expect(decodeURIComponent(encoded)).toBe(PASSWORD)

    for (const host of HOSTS) {
      for (const block of blocksOf('install.md', '## From source')) {
        await run(host, block.replace(/^npm run build.*$/m, ''))
      }
    }
    const account = await run('host-a', 'hop account create --email a@a.test --plan pro --json')
    const key = JSON.parse(account).api_key as string
    const [settings = ''] = blocksOf('cluster.md', '### On each host')
    for (const host of HOSTS) {
      const own = settings.replace('PASSWORD', encoded).replace('10.0.0.1', ADDRESSES[host])
      await run(host, own)
    }
    const onA = blocksOf('cluster.md', '### On host A').join('\n')
    const onOthers = blocksOf('cluster.md', '### On hosts B and C').join('\n')
    expect([onA, onOthers].map((block) => /^hop |\| hop /m.test(block))).toEqual([true, true])
    await run('host-a', onA)
    await run('host-b', onOthers)
    // A start that comes too early is refused, and is not in the way.
    await run('host-c', 'systemctl start hopcode')
    expect(await run('host-c', 'journalctl')).toContain('belongs to no cluster yet')
    await run('host-c', onOthers)

    let status = ''
    await eventually('all hosts follow the log', async () => {
      status = await run('host-b', 'hop cluster status || true')
      return status.includes('No problems.')
    })
    for (const name of HOSTS) expect(status).toMatch(new RegExp(`^${name} .* live `, 'm'))
    const ofService = `HOPCODE_API_KEY=${key} HOPCODE_URL=http://${ADDRESSES['host-a']}:3000`
    const created = await run('host-a', `${ofService} hopcode shorten https://example.com/ --json`)
    const { code } = JSON.parse(created) as { code: string }
    for (const host of HOSTS) {
      const url = `http://${ADDRESSES[host]}:3000`
      const location = `curl -sS -o /dev/null -w '%{redirect_url}' ${url}/${code}`
      expect(await run('balancer', location)).toBe('https://example.com/')
      // The balancer names its clients, which have limits of their own.
      const remaining = async (client: string) => {
        const words = `-H 'X-Forwarded-For: ${client}' ${url}/api/lookup/${code}`
        const headers = await run('balancer', `curl -sS -o /dev/null -D - ${words}`)
        return Number(/^x-ratelimit-remaining: (\d+)/im.exec(headers)?.[1])
      }
      const [first, again] = [await remaining('203.0.113.1'), await remaining('203.0.113.1')]
      expect([again, await remaining('198.51.100.1')]).toEqual([first - 1, first])
    }
    const connections = await run(
      'db.internal',
      `runuser -u postgres -- psql -qtAc "SELECT DISTINCT ssl FROM pg_stat_ssl
        JOIN pg_stat_activity USING (pid) WHERE usename = 'hopcode'"`,
    )
    expect(connections.trim()).toBe('t')
    const owners = 'ps -o user= -p "$(cat /run/hopcode.pid)"; stat -c "%U %a" /var/lib/hopcode'
    expect((await run('host-c', owners)).trim()).toBe('hopcode\nhopcode 700')
  },
  300_000,
)
