/** The parts that tests use of packages without types of their own. */

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

declare module 'parse-prometheus-text-format' {
  interface Metric {
    value?: string
    labels?: Record<string, string>
    buckets?: Record<string, string>
    count?: string
    sum?: string
  }

  interface Family {
    name: string
    help: string
    type: 'COUNTER' | 'GAUGE' | 'HISTOGRAM' | 'SUMMARY' | 'UNTYPED'
    metrics: Metric[]
  }

  function parse(text: string): Family[]
  export = parse
}
