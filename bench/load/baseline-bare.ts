// The baseline of bench/load/redirect.ts: what does Bun.serve alone cost for the same 302?
// bun bench/load/baseline-bare.ts <port> <links.json>, where the file holds [{"code","url"}, …]
import { readFileSync } from 'node:fs'

const [port, linksFile = ''] = process.argv.slice(2)
const links = JSON.parse(readFileSync(linksFile, 'utf8')) as { code: string; url: string }[]
const urls = new Map(links.map(({ code, url }) => [code, url]))
/** A constant of the same length as a request id of the service. */
const REQUEST_ID = 'abcdefgh-12345'

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  routes: {
    '/:code': ({ params: { code } }) => {
      const url = urls.get(code)
      if (url === undefined) return new Response(null, { status: 404 })
      return new Response(null, {
        status: 302,
        headers: {
          Location: url,
          'Cache-Control': 'no-store',
          'X-Service-Code': code,
          'X-RateLimit-Limit': '1000000',
          'X-RateLimit-Remaining': '999999',
          'X-RateLimit-Reset': '1790000000',
          'X-Request-Id': REQUEST_ID,
        },
      })
    },
  },
  fetch: () => new Response(null, { status: 404 }),
})

process.on('SIGTERM', () => process.exit(0))
