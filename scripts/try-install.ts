/**
 * Tries dist/release/ on fresh systems: `bun scripts/try-install.ts ROOT …`. Each ROOT is the
 * folder of a fresh system (`debootstrap --variant=minbase trixie ROOT`), used up by this. Runs the
 * blocks of docs/operations/install.md in it, the package and then the tarball, and prints the time
 * from the download to the first redirect. Needs root. A script stands for systemd.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { $ } from 'bun'
import { blocksOf, JOURNALCTL, SYSTEMCTL } from '../test/support/install-guide.ts'

const RELEASE = join(import.meta.dir, '../dist/release')
const COMMANDS = ['## The package of Debian', '## The tarball']
const CREATE = 'hop account create --email me@hop.example --plan pro --json 2> /dev/null'

/** Until the first redirect: an account, a link, and the way of a visitor. */
async function firstCode(inside: (script: string) => Promise<string>): Promise<void> {
  const { api_key } = JSON.parse((await inside(CREATE)).trim().split('\n').at(-1) ?? '')
  const headers = { 'x-api-key': api_key, 'content-type': 'application/json' }
  const body = JSON.stringify({ url: 'https://example.com/' })
  const url = 'http://127.0.0.1:3000'
  const created = await fetch(`${url}/api/shorten`, { method: 'POST', headers, body })
  const { short_url } = (await created.json()) as { short_url: string }
  if (!short_url.startsWith('https://hop.example/')) throw new Error(`the code is ${short_url}`)
  const { status } = await fetch(url + new URL(short_url).pathname, { redirect: 'manual' })
  if (status !== 302) throw new Error(`the first link answers ${status}`)
}

async function tryOn(root: string): Promise<void> {
  const inside = async (script: string) =>
    $`chroot ${root} bash -eo pipefail -c ${`cd /root; ${script}`}`.text()
  const system = /PRETTY_NAME="(.*)"/.exec(readFileSync(join(root, 'etc/os-release'), 'utf8'))?.[1]
  await $`cp /etc/resolv.conf ${root}/etc/ && mount -t proc proc ${root}/proc`
  try {
    for (const [name, script] of Object.entries({ systemctl: SYSTEMCTL, journalctl: JOURNALCTL })) {
      writeFileSync(join(root, 'usr/local/bin', name), script, { mode: 0o755 })
    }
    await inside('apt-get -q update')
    for (const file of readdirSync(RELEASE).filter((one) =>
      /amd64\.deb$|linux-x64\.tar/.test(one),
    )) {
      await $`cp ${join(RELEASE, file)} ${join(root, 'root')}`
    }
    for (const heading of COMMANDS) {
      const [first = '', service = ''] = blocksOf('install.md', heading)
      const isTarball = heading.includes('tarball')
      const startedAt = performance.now()
      // What only tries the program does not end by itself.
      await inside(isTarball ? `${first.replace(/ && .*/, '')}\n${service}` : first)
      await firstCode(inside)
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      console.log(`${system}, ${heading.slice(3)}: first code after ${seconds} s`)
      await inside('systemctl stop hopcode')
      if (isTarball) continue
      const purged = await inside('DEBIAN_FRONTEND=noninteractive apt-get -q purge -y hopcode 2>&1')
      const left = await inside(
        'ls /var/lib/hopcode; test ! -e /etc/hopcode; deluser hopcode 2>&1; rm -r /var/lib/hopcode',
      )
      if (!/hopcode: .*stay/.test(purged) || !left.includes('hopcode.db')) throw new Error(purged)
    }
  } finally {
    await $`umount ${root}/proc`
  }
}

for (const root of process.argv.slice(2)) {
  console.log(`== ${basename(root)}`)
  await tryOn(root)
}
