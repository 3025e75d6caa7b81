import { describe, expect } from 'bun:test'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { testWith } from '../support/tools.ts'

/** The load balancer configurations that we provide, in front of two services. */

/** The load balancers that we provide a configuration for, without TLS. */
const BALANCERS = {
  haproxy: { tools: ['haproxy'], start: startHaproxy },
  nginx: { tools: ['nginx', 'curl'], start: startNginx },
} as const

interface Balancer extends AsyncDisposable {
  url: string
}

const OPERATIONS = join(import.meta.dir, '../../docs/operations')
const read = (name: string) => readFileSync(join(OPERATIONS, name), 'utf8')

/** `hosts`: where two services listen. Files are written to `folder`. */
async function startHaproxy(hosts: readonly string[], folder: string): Promise<Balancer> {
  const port = freePort()
  const [a = '', b = ''] = hosts
  const text = read('haproxy.cfg')
    .replace('    log /dev/log local0\n', '')
    .replace(/bind :443 .*/, `bind 127.0.0.1:${port}`)
    .replaceAll('10.0.0.1:3000', a)
    .replaceAll('10.0.0.2:3000', b)
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  return await running(`http://127.0.0.1:${port}`, [spawn(['haproxy', '-db', '-f', file])])
}

async function startNginx(hosts: readonly string[], folder: string): Promise<Balancer> {
  const port = freePort()
  const list = join(folder, 'hosts')
  const text = read('nginx-hosts.conf')
    .replace('/etc/nginx/hopcode-hosts', list)
    .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
    .replace('    listen [::]:443 ssl http2;\n', '')
    .replace(/^ {4}ssl_certificate(_key)? .*\n/gm, '')
  writeFileSync(list, hosts.map((host) => `server ${host};\n`).join(''))
  const file = join(folder, 'nginx.conf')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    file,
    `daemon off;
     pid ${folder}/nginx.pid;
     worker_processes 1;
     events { worker_connections 256; }
     http {
       access_log off;
       ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
       ${text}
     }`,
  )
  const words = ['nginx', '-p', folder, '-c', file, '-e', join(folder, 'error.log')]
  const nginx = spawn(words)
  const env = { RELOAD: [...words, '-s', 'reload'].join(' ') }
  const watcher = spawn([join(OPERATIONS, 'nginx-hosts.sh'), list, ...hosts], env)
  return await running(`http://127.0.0.1:${port}`, [watcher, nginx])
}

const spawn = (words: string[], env: Record<string, string> = {}): Bun.Subprocess =>
  Bun.spawn(words, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'ignore'] })

async function running(url: string, children: readonly Bun.Subprocess[]): Promise<Balancer> {
  await eventually('the balancer answers', async () => {
    if (children.some(({ exitCode }) => exitCode !== null)) throw new Error('it ended')
    return (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true
  })
  return {
    url,
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGTERM')
      await Promise.all(children.map(({ exited }) => exited))
    },
  }
}

const KEYS = 12

/** Two services with the same accounts and keys, as hosts of a cluster have. */
async function twoHosts(folder: string) {
  const dataDir = join(folder, 'one')
  const env = { LOG_REQUESTS: 'api' }
  await using first = await testApp()
  const keys = Array.from({ length: KEYS }, (_, i) => first.key(`free-${i}`))
  await first.claim('SPRING26')
  await first.stop()
  for (const name of ['one', 'two']) cpSync(first.dataDir, join(folder, name), { recursive: true })
  const one = await testApp({ dataDir, env })
  const two = await testApp({ dataDir: join(folder, 'two'), env })
  return { one, two, keys }
}

const requestsOf = (app: TestApp) =>
  app.log
    .map((line) => JSON.parse(line))
    .filter(({ event, route }) => event === 'request' && route === '/api/list')

describe.each(['haproxy', 'nginx'] as const)('%s', (name) => {
  const { tools, start } = BALANCERS[name]

  testWith(...tools)(
    'each key and each address meets one host, and one that is not ready receives nothing',
    async () => {
      using folder = temporaryFolder()
      const { one, two, keys } = await twoHosts(folder.path)
      await using _one = one
      await using _two = two
      const addresses = [one, two].map(({ url }) => new URL(url).host)
      await using balancer = await start(addresses, folder.path)
      let sent = 0
      const list = async (key: string) => {
        // Both ways to send a key lead to the same host.
        const own = ++sent % 2 ? { 'x-api-key': key } : { authorization: `Bearer ${key}` }
        const headers = { ...own, 'x-forwarded-for': '203.0.113.5' }
        const answer = await fetch(`${balancer.url}/api/list`, { headers })
        await answer.text()
        return [answer.status, Number(answer.headers.get('x-ratelimit-remaining'))]
      }
      const lookUp = async () => {
        const answer = await fetch(`${balancer.url}/api/lookup/SPRING26`)
        await answer.text()
        return Number(answer.headers.get('x-ratelimit-remaining'))
      }
      // The line of a request is written after its response.
      const allLogged = () =>
        eventually('each request is logged once', () => {
          return requestsOf(one).length + requestsOf(two).length === sent
        })
      // Ten of each key, in turn: each host counts by itself, so one host counts down by one.
      for (let i = 1; i <= 10; i++) {
        for (const key of keys) expect(await list(key)).toEqual([200, 300 - i])
        expect(await lookUp()).toBe(300 - i)
      }
      await allLogged()
      expect(sent).toBe(10 * KEYS)
      const [atOne, atTwo] = [requestsOf(one), requestsOf(two)]
      expect([atOne.length > 0, atTwo.length > 0]).toEqual([true, true])
      // The balancer's own view of the client, not what the client claims.
      for (const { client } of [...atOne, ...atTwo]) expect(client).toBe('127.0.0.0/24')
      expect((await fetch(`${balancer.url}/-/metrics`)).status).toBe(404)

      await one.beginStop()
      await eventually('requests go to the other host alone', async () => {
        const before = requestsOf(one).length
        for (const key of keys) await list(key)
        await allLogged()
        return requestsOf(one).length === before
      })
      const before = requestsOf(one).length
      for (const key of keys) expect((await list(key))[0]).toBe(200)
      await allLogged()
      expect(requestsOf(one)).toHaveLength(before)

      await two.beginStop()
      await eventually('links work all the same while no host is ready', async () => {
        const ready = await fetch(`${balancer.url}/-/ready`)
        if (ready.status !== 503) return false
        const answer = await fetch(`${balancer.url}/SPRING26`, { redirect: 'manual' })
        return answer.status === 302
      })
    },
  )
})
