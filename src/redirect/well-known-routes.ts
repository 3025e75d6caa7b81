import { Elysia } from 'elysia'
import { APP_FILES, APP_KINDS, type appFiles } from '../addresses/app-files.ts'
import type { DomainMap } from '../addresses/map.ts'
import type { DataOf } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { compressible } from '../http/compression.ts'
import type { ResponseState } from '../http/context.ts'
import { admit, type GuardDeps } from '../http/guard.ts'
import { DAY, isoTime } from '../lib/clock.ts'

type WellKnownDeps = GuardDeps & {
  data: DataOf<{ appFiles: typeof appFiles }>
  domains: DomainMap
  operatorContact: string | undefined
}

/** RFC 9116 recommends less than a year. */
const CONTACT_DAYS = 180

/** Files that programs expect below `/.well-known/`, of each domain of the service. */
export function wellKnownRoutes(deps: WellKnownDeps) {
  const { data, domains, operatorContact, clock } = deps
  const app = new Elysia({ name: 'redirect.well-known', prefix: '/.well-known' })
  /** `find`: undefined if there is no such file. */
  const serve = (name: string, type: string, find: (domainId: number) => string | undefined) =>
    app.get(`/${name}`, ({ request, set }) => {
      const context = { request, set: set as ResponseState }
      admit(deps, context, { budget: 'read', duringMaintenance: true })
      const text = find(domains.ofRequest(request).id)
      if (text === undefined) throw new AppError('path_not_found')
      const headers = { 'content-type': type, 'cache-control': 'public, max-age=3600' }
      return compressible(text, 200, new Headers(headers))
    })
  for (const kind of APP_KINDS) {
    serve(APP_FILES[kind].name, 'application/json', (id) => data.appFiles.find(id, kind))
  }
  serve('security.txt', 'text/plain; charset=utf-8', () => {
    const expires = (Math.floor(clock() / DAY) + CONTACT_DAYS) * DAY
    return operatorContact && `Contact: ${operatorContact}\nExpires: ${isoTime(expires)}\n`
  })
  return app
}
