import { eventually } from './app.ts'
import { freePort } from './ports.ts'

/** Varnish with its built-in configuration, a shared cache, in front of a service. */
export async function startVarnish(
  service: string,
  folder: string,
): Promise<AsyncDisposable & { url: string }> {
  const port = freePort()
  const { host } = new URL(service)
  const options = ['-n', folder, '-j', 'none', '-s', 'default,16m', '-T', 'none']
  const listen = ['-a', `127.0.0.1:${port}`, '-b', host]
  const child = Bun.spawn(['varnishd', '-F', ...options, ...listen], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const url = `http://127.0.0.1:${port}`
  await eventually('Varnish answers', async () => {
    if (child.exitCode !== null) throw new Error('it ended')
    return (await fetch(`${url}/-/live`).catch(() => undefined))?.ok === true
  })
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
