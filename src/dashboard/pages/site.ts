import { Elysia } from 'elysia'
import favicon from '../assets/favicon.ico' with { type: 'file' }
import type { DashboardDeps } from '../deps.ts'

/** A search engine may follow short links: it indexes their destinations. */
const ROBOTS = `User-agent: *
Disallow: /app
Disallow: /api/
`

const DAY_SECONDS = 24 * 3600

/** Files that browsers and search engines ask every host for. They are small and need no limit. */
export const sitePages = ({ rootUrl = '/app' }: Pick<DashboardDeps, 'rootUrl'>) =>
  new Elysia({ name: 'dashboard.site' })
    .get('/', ({ redirect }) => redirect(rootUrl, 302))
    .get('/robots.txt', () => fileOf(ROBOTS, 'text/plain; charset=utf-8'))
    .get('/favicon.ico', () => fileOf(Bun.file(favicon), 'image/x-icon'))

const fileOf = (body: string | Blob, type: string): Response =>
  new Response(body, {
    headers: { 'content-type': type, 'cache-control': `public, max-age=${DAY_SECONDS}` },
  })
