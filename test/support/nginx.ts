import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from './app.ts'
import { freePort } from './ports.ts'

/** nginx with the configuration that we provide, without TLS, in front of a service. */

const PROVIDED = join(import.meta.dir, '../../docs/operations/nginx.conf')
const CERTIFICATE = /^ {4}ssl_certificate(_key)? .*\n/gm

export class Nginx implements AsyncDisposable {
  readonly url: string
  readonly #folder: string
  readonly #child: Bun.Subprocess

  private constructor(url: string, folder: string, child: Bun.Subprocess) {
    this.url = url
    this.#folder = folder
    this.#child = child
  }

  /** `service`: where it listens. Files are written to `folder`. Throws without nginx. */
  static async start(service: string, folder: string, provided?: string): Promise<Nginx> {
    const port = freePort()
    const text = provided ?? readFileSync(PROVIDED, 'utf8')
    const changed = text
      .replace('server 127.0.0.1:3000;', `server ${new URL(service).host};`)
      .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
      .replace('    listen [::]:443 ssl http2;\n', '')
      .replace(CERTIFICATE, '')
    writeFileSync(join(folder, 'hopcode.conf'), changed)
    writeFileSync(join(folder, 'nginx.conf'), mainConfiguration(folder))
    const words = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')]
    const child = Bun.spawn([...words, '-e', join(folder, 'error.log')], {
      stdio: ['ignore', 2, 2],
    })
    const nginx = new Nginx(`http://127.0.0.1:${port}`, folder, child)
    await eventually('nginx answers', async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${nginx.logs}`)
      return (await fetch(`${nginx.url}/-/ready`).catch(() => undefined))?.ok === true
    })
    return nginx
  }

  /** Both logs, as they are now: nginx writes each line when its answer is sent. */
  get logs(): string {
    const read = (name: string) => readFileSync(join(this.#folder, name), 'utf8')
    return read('access.log') + read('error.log')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#child.exited
  }
}

const mainConfiguration = (folder: string): string => `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
events { worker_connections 256; }
http {
  access_log ${folder}/access.log combined;
  error_log ${folder}/error.log info;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n  ')}
  include ${folder}/hopcode.conf;
}
`
