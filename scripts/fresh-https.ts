/**
 * How long a short link over https takes on a fresh Debian: one file, one command, and the
 * test authority Pebble in the place of Let's Encrypt. Needs root, debootstrap, curl and Go:
 * node scripts/run.mjs scripts/fresh-https.ts
 */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binary } from '../test/support/binary.ts'
import { temporaryFolder } from '../test/support/folder.ts'
import { Pebble } from '../test/support/pebble.ts'
import { freePort } from '../test/support/ports.ts'

const RELEASE = 'bookworm'
const LATEST_MS = 60_000
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

function run(...words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(words)
  if (exitCode !== 0) throw new Error(`${words.join(' ')}: ${stderr}`)
  return String(stdout)
}

async function main(): Promise<void> {
  using folder = temporaryFolder()
  const root = join(folder.path, 'debian')
  console.log(`Unpacking Debian ${RELEASE}…`)
  run('debootstrap', '--variant=minbase', RELEASE, root)
  mkdirSync(join(root, 'proc'), { recursive: true })
  run('mount', '-t', 'proc', 'proc', join(root, 'proc'))
  try {
    await serve(folder.path, root)
  } finally {
    run('umount', join(root, 'proc'))
  }
}

async function serve(folder: string, root: string): Promise<void> {
  await using pebble = await Pebble.start({ httpPort: freePort() })
  const ca = join(folder, 'root.pem')
  writeFileSync(ca, await pebble.root())
  cpSync(pebble.authorityFile, join(root, 'ca.pem'))
  const httpsPort = freePort()
  const start = performance.now()
  // The download.
  cpSync(await binary(), join(root, 'usr/local/bin/hopcode'))
  const settings = {
    BASE_URL: `https://go.example:${httpsPort}`,
    ACME_EMAIL: 'me@example.org',
    ACME_DIRECTORY: pebble.directory,
    DATA_DIR: '/var/lib/hopcode',
    NODE_EXTRA_CA_CERTS: '/ca.pem',
    PORT: String(pebble.httpPort),
    HTTPS_PORT: String(httpsPort),
  }
  const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const inside = ['/usr/sbin/chroot', root, 'env', '-i', ...words, '/usr/local/bin/hopcode']
  const service = Bun.spawn([...inside, 'serve'], {
    env: ENVIRONMENT,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  try {
    const curl = ['curl', '-sS', '--cacert', ca, '--resolve', `go.example:${httpsPort}:127.0.0.1`]
    const isServed = () => {
      return (
        Bun.spawnSync([...curl, '-o', '/dev/null', `${settings.BASE_URL}/-/live`]).exitCode === 0
      )
    }
    while (!isServed()) {
      if (performance.now() - start > LATEST_MS) throw new Error('there is no certificate in time')
      await Bun.sleep(200)
    }
    const account = ['account', 'create', '--email', 'me@example.org', '--plan', 'free', '--json']
    const { api_key: key } = JSON.parse(run(...inside, ...account))
    const json = ['-H', `X-API-Key: ${key}`, '-H', 'Content-Type: application/json']
    const body = ['-d', '{"url":"https://example.com/"}', `${settings.BASE_URL}/api/shorten`]
    const { short_url: link } = JSON.parse(run(...curl, ...json, ...body))
    const head = run(...curl, '-i', link)
    if (!/^HTTP\/1.1 302[\s\S]*\nLocation: https:\/\/example.com\/\r/.test(head))
      throw new Error(head)
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    console.log(`${link} is answered over https ${seconds} s after the download began.`)
  } finally {
    service.kill('SIGTERM')
    await service.exited
  }
}

await main()
