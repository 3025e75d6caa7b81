import { Elysia } from 'elysia'
import style from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import bundle from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import type { Config } from '../config.ts'
import { ASSET_PATHS, THEME_STYLE } from '../dashboard/assets.ts'
import { Cookies, type Theme } from '../dashboard/auth/cookies.ts'
import { type GuardDeps, publicly } from '../http/guard.ts'
import { attributes, html } from '../lib/html.ts'
import ownStyle from './docs.css' with { type: 'text' }
import type { Route } from './document.ts'
import start from './start.js' with { type: 'text' }

/** The page loads nothing from other servers: script and style are in the binary. */
const pageWith = (theme: Theme | undefined) => html`<!doctype html>
<html lang="en" ${attributes({ 'data-theme': theme })}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${theme ?? 'light dark'}">
<title>Hopcode API</title>
<link rel="icon" href="${ASSET_PATHS.icon}" type="image/svg+xml">
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header class="top">
<a class="brand" href="/app"><img src="${ASSET_PATHS.icon}" alt="" width="28"
height="28">Hopcode API</a>
<a href="/app">Dashboard</a>
</header>
<div id="swagger-ui"></div>
<noscript>The description itself is at <a href="/docs/json">/docs/json</a>.</noscript>
<script src="/docs/bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/** CSS imports must come before every other rule. */
const STYLE = `@import url("/docs/swagger.css") layer(swagger);\n${THEME_STYLE}${ownStyle}`

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  // The page contains the chosen theme.
  vary: 'cookie',
}

const script = { 'content-type': 'text/javascript; charset=utf-8' }
const css = { 'content-type': 'text/css; charset=utf-8' }

const json = { 'content-type': 'application/json;charset=utf-8' }

interface Deps extends GuardDeps {
  config: Config
}

/** Large files, compressed at their first request. */
const gzipped = new Map<string, Promise<Uint8Array<ArrayBuffer>>>()

const gzip = async (file: string) => Bun.gzipSync(await Bun.file(file).bytes())

/** With its length, so that it is sent at the pace of its reader (`countUnsent`). */
async function fileResponse({ headers }: Request, file: string, type: object): Promise<Response> {
  const isGzip = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
  const bytes = isGzip
    ? await gzipped.getOrInsertComputed(file, gzip)
    : await Bun.file(file).bytes()
  return new Response(bytes, {
    headers: {
      ...type,
      'content-length': String(bytes.length),
      vary: 'accept-encoding',
      ...(isGzip && { 'content-encoding': 'gzip' }),
    },
  })
}

/**
 * `/docs/json`, the OpenAPI document of `routes`; `/docs`, a page that shows it. The code for the
 * document is loaded at the first request: otherwise the service would use a third more memory.
 */
export function openapiRoutes(deps: Deps, routes: () => readonly Route[]) {
  const { config } = deps
  let published: Promise<string> | undefined
  const publish = async () => (await import('./document.ts')).publish(routes(), config)
  const cookies = new Cookies(config)
  return new Elysia({ name: 'openapi' })
    .use(publicly(deps, { budget: 'read', duringMaintenance: true }))
    .get('/docs/json', async () => {
      published ??= publish()
      return new Response(await published, { headers: json })
    })
    .get('/docs', ({ request }) => {
      const page = pageWith(cookies.findTheme(request)).toString()
      return new Response(page, { headers: PAGE_HEADERS })
    })
    .get('/docs/start.js', () => new Response(start, { headers: script }))
    .get('/docs/bundle.js', ({ request }) => fileResponse(request, bundle, script))
    .get('/docs/swagger.css', ({ request }) => fileResponse(request, style, css))
    .get('/docs/style.css', () => new Response(STYLE, { headers: css }))
}
