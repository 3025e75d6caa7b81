/** The package has no types of its own: the parts that tests use. */
declare module 'oidc-provider' {
  import type { Server } from 'node:http'

  interface Configuration {
    clients: { client_id: string; client_secret: string; redirect_uris: string[] }[]
    claims: Record<string, string[]>
    findAccount: (
      context: unknown,
      id: string,
    ) => { accountId: string; claims: () => { sub: string } & Record<string, unknown> }
    cookies: { keys: string[] }
  }

  export class Provider {
    constructor(issuer: string, configuration: Configuration)
    listen(port: number, host: string, listening: () => void): Server
  }
}
