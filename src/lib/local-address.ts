/** A host as in a URL: an IPv6 address is in brackets. */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** Where a service with these settings answers on this machine. */
export function localAddress(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${urlHost(name)}:${port}`
}

interface Listening {
  host: string
  port: number
  hostName: string
}

/** Address of this host, for people: all hosts of a cluster have the same BASE_URL. */
export function hostAddress({ host, port, hostName }: Listening): string {
  const local = localAddress(host, port)
  return local.replace(/^http:\/\/127\.0\.0\.1(?=:)/, `http://${hostName}`)
}
