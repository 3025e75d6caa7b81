import { expect } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { binary } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { Machines } from '../support/machines.ts'
import { findPostgres } from '../support/postgres.ts'
import { testWith } from '../support/tools.ts'

/** The commands of the guides, in their order, on five machines. */

const OPERATIONS = join(import.meta.dir, '../../docs/operations')
const ADDRESSES = {
  'db.internal': '10.0.0.8',
  'host-a': '10.0.0.1',
  'host-b': '10.0.0.2',
  'host-c': '10.0.0.3',
  balancer: '10.0.0.5',
}
const HOSTS = ['host-a', 'host-b', 'host-c'] as const
const PASSWORD = `it's 100% "p@ss/w#rd?" $HOME`

/** The shell commands under a heading of a page, block by block. */
function blocksOf(page: string, heading: string): string[] {
  const text = readFileSync(join(OPERATIONS, page), 'utf8')
  const [, section] = text.split(`\n${heading}\n`)
  const [own = ''] = section?.split(/^#{2,3} /m) ?? []
  return [...own.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands = '']) => commands)
}

/** Stands for systemd: the unit's user, environment and folder. */
const SYSTEMCTL = `#!/bin/bash
set -e
of() { sed -n "s/^$1=//p" /etc/systemd/system/hopcode.service; }
case "$*" in
  'enable --now hopcode' | 'start hopcode')
    user=$(of User)
    install -d -o "$user" -g "$(of Group)" -m "$(of StateDirectoryMode)" "/var/lib/$(of StateDirectory)"
    log=/var/log/hopcode.log
    > $log
    set -a; . "$(of EnvironmentFile)"; declare "$(of Environment)"
    setsid setpriv --reuid="$user" --regid="$(of Group)" --clear-groups $(of ExecStart) \\
      < /dev/null >> $log 2>&1 &
    echo $! > /run/hopcode.pid
    # The next command of a person comes later than that of a test.
    while kill -0 $! 2> /dev/null && ! grep -q service.started $log; do sleep 0.05; done ;;
  'stop hopcode')
    kill "$(cat /run/hopcode.pid)" && tail --pid="$(cat /run/hopcode.pid)" -f /dev/null ;;
  'restart postgresql')
    pg_ctlcluster "$(ls /etc/postgresql | grep '[0-9]')" main restart ;;
esac
`

/** Prints the last lines of the service's log. */
const JOURNALCTL = '#!/bin/sh\ntail -n 20 /var/log/hopcode.log\n'

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
      for (const block of blocksOf('install.md', '## The service')) {
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
