import { type Config, urlHost } from '../config.ts'
import { CommandError } from './command-error.ts'

const TIMEOUT_MS = 3000

/** Asks the service on this machine whether it is ready: for a container's health check. */
export async function health({ host, port }: Config): Promise<string> {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  const address = `http://${urlHost(name)}:${port}/-/ready`
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(address, { signal }).catch((error: Error) => {
    throw new CommandError(`${address} does not answer: ${error.message}`)
  })
  if (!response.ok) throw new CommandError(`${address} answers ${response.status}`)
  return 'ready'
}
