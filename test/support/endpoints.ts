import type { Answer } from './app.ts'

/**
 * The spec's chapter "Endpoints", written out once more, independent of the service's own routes,
 * and the endpoints beyond the spec.
 */

export interface Endpoint {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** As the spec writes it, with `{code}`. */
  path: string
  budget: 'read' | 'write'
  needsKey: boolean
  /** Redirects and images go on during maintenance. */
  duringMaintenance?: true
}

const write = (path: string): Endpoint => ({
  method: 'POST',
  path,
  budget: 'write',
  needsKey: true,
})
const read = (path: string, more: Partial<Endpoint> = {}): Endpoint => ({
  method: 'GET',
  path,
  budget: 'read',
  needsKey: false,
  ...more,
})

export const WRITES: readonly Endpoint[] = [
  write('/api/shorten'),
  write('/api/reserve'),
  write('/api/update'),
  write('/api/delete'),
  write('/api/bulk-shorten'),
]

export const LIST: Endpoint = read('/api/list', { needsKey: true })

export const PUBLIC: readonly Endpoint[] = [
  read('/api/lookup/{code}'),
  read('/api/qr/{code}'),
  read('/qr/{code}', { duringMaintenance: true }),
  read('/api/qr-image/{code}'),
  read('/{code}', { duringMaintenance: true }),
  read('/api/status'),
]

export const WITH_KEY: readonly Endpoint[] = [...WRITES, LIST]
export const READS: readonly Endpoint[] = [LIST, ...PUBLIC]
export const ENDPOINTS: readonly Endpoint[] = [...WRITES, ...READS]

/** Not in the spec. */
export const BEYOND_THE_SPEC: readonly Endpoint[] = [
  read('/api/domains', { needsKey: true }),
  read('/api/links', { needsKey: true }),
  read('/api/links/{code}', { needsKey: true }),
  { ...write('/api/links/{code}'), method: 'PATCH' },
  { ...write('/api/links/{code}'), method: 'DELETE' },
  read('/api/links/{code}/history', { needsKey: true }),
  read('/api/links/{code}/hits', { needsKey: true }),
  write('/api/import'),
  read('/api/export', { needsKey: true }),
  read('/api/hits', { needsKey: true }),
  read('/api/links/{code}/visits', { needsKey: true }),
  read('/api/visits', { needsKey: true }),
]

export const ALL: readonly Endpoint[] = [...ENDPOINTS, ...BEYOND_THE_SPEC]

/** Those of webhooks, whose chapter is `webhooks.test.ts`. */
export const WEBHOOKS: readonly Endpoint[] = [
  read('/api/webhooks', { needsKey: true }),
  write('/api/webhooks'),
  { ...write('/api/webhooks/{id}'), method: 'PATCH' },
  { ...write('/api/webhooks/{id}'), method: 'DELETE' },
  write('/api/webhooks/{id}/rotate'),
  write('/api/webhooks/{id}/test'),
  read('/api/webhooks/{id}/deliveries', { needsKey: true }),
]

/** The path with a code in it. */
export const pathOf = ({ path }: Endpoint, code = 'ABCDEF'): string => path.replace('{code}', code)

export const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

/** What a row of a table expects, with the row's name, so that a failure tells which row it was. */
export const outcome = (at: string, { status, body }: Answer) => ({ at, status, body })
