import { Elysia } from 'elysia'
import style from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import bundle from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import type { Route } from './document.ts'

/** The page loads nothing from other servers: script and style are in the binary. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hopcode API</title>
<link rel="stylesheet" href="/docs/style.css">
<link rel="icon" href="data:,">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>The description itself is at <a href="/docs/json">/docs/json</a>.</noscript>
<script src="/docs/bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const START = `SwaggerUIBundle({
  url: '/docs/json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
})
`

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
}

const script = { 'content-type': 'text/javascript; charset=utf-8' }
const css = { 'content-type': 'text/css; charset=utf-8' }

const json = { 'content-type': 'application/json;charset=utf-8' }

/**
 * `/docs/json`, the OpenAPI document of `routes`; `/docs`, a page that shows it. The code for the
 * document is loaded at the first request: otherwise the service would use a third more memory.
 */
export function openapiRoutes(baseUrl: string, routes: () => readonly Route[]) {
  let published: Promise<string> | undefined
  const publish = async () => (await import('./document.ts')).publish(routes(), baseUrl)
  return new Elysia({ name: 'openapi' })
    .get('/docs/json', async () => {
      published ??= publish()
      return new Response(await published, { headers: json })
    })
    .get('/docs', () => new Response(PAGE, { headers: PAGE_HEADERS }))
    .get('/docs/start.js', () => new Response(START, { headers: script }))
    .get('/docs/bundle.js', () => new Response(Bun.file(bundle), { headers: script }))
    .get('/docs/style.css', () => new Response(Bun.file(style), { headers: css }))
}
