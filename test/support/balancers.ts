import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from './app.ts'
import { freePort } from './ports.ts'

/** The load balancers that we provide a configuration for, without TLS. */
export const BALANCERS = {
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
