import { readFileSync } from 'node:fs'
import inter from '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2' with {
  type: 'file',
}
import htmx from 'htmx.org/dist/htmx.min.js' with { type: 'text' }
import chartScript from './assets/charts.js' with { type: 'text' }
import style from './assets/dashboard.css' with { type: 'text' }
import script from './assets/dashboard.js' with { type: 'text' }
import icon from './assets/icon.svg' with { type: 'text' }
import icon192 from './assets/icon-192.png' with { type: 'file' }
import icon512 from './assets/icon-512.png' with { type: 'file' }
import maskableIcon from './assets/icon-maskable.png' with { type: 'file' }
import linkScript from './assets/link.js' with { type: 'text' }
import listScript from './assets/list.js' with { type: 'text' }
import qrScript from './assets/qr.js' with { type: 'text' }
import theme from './assets/theme.css' with { type: 'text' }

interface Asset {
  bytes: Uint8Array<ArrayBuffer>
  gzipped: Uint8Array<ArrayBuffer>
  type: string
}

/** By file name. All are embedded in the program. */
const ASSETS = new Map<string, Asset>()

const font = add('inter', 'woff2', 'font/woff2', readFileSync(inter))

/** Latin letters in all weights from 100 to 900. */
const fontFace = `@font-face {
  font-family: "Inter Variable";
  font-display: swap;
  font-weight: 100 900;
  src: url(${font}) format("woff2-variations");
}
`

/** The design's variables and typeface, also for the API page. */
export const THEME_STYLE = fontFace + theme

const STYLES = [THEME_STYLE, style]
/** Scripts in the order in which they run. Each part of the dashboard has a file of its own. */
const SCRIPTS = [script, chartScript, linkScript, listScript, qrScript]

const addIcon = (name: string, file: string) => add(name, 'png', 'image/png', readFileSync(file))
/** Its motif is in the middle: systems cut it to their own shape. */
const maskable = addIcon('icon-maskable', maskableIcon)

/** What browsers install as an app. What other apps share opens the form of a new link. */
const MANIFEST = {
  name: 'Hopcode',
  description: 'Short links and QR codes',
  id: '/app',
  start_url: '/app/links',
  scope: '/app',
  display: 'minimal-ui',
  theme_color: '#5b54f0',
  background_color: '#ffffff',
  icons: [
    { src: addIcon('icon-192', icon192), sizes: '192x192', type: 'image/png' },
    { src: addIcon('icon-512', icon512), sizes: '512x512', type: 'image/png' },
    { src: maskable, sizes: '512x512', type: 'image/png', purpose: 'maskable' },
  ],
  share_target: {
    action: '/app/links',
    method: 'GET',
    enctype: 'application/x-www-form-urlencoded',
    params: { title: 'title', text: 'text', url: 'url' },
  },
}

/** The operator's logo, if there is one: see `OPERATOR_LOGO`. */
export const LOGO_PATH = '/-/logo'

/** The path of each file. It contains a hash of the content, so browsers may cache it forever. */
export const ASSET_PATHS = {
  font,
  style: add('dashboard', 'css', 'text/css; charset=utf-8', STYLES.join('\n')),
  script: add('dashboard', 'js', 'text/javascript; charset=utf-8', SCRIPTS.join('\n')),
  htmx: add('htmx', 'js', 'text/javascript; charset=utf-8', htmx),
  icon: add('icon', 'svg', 'image/svg+xml', icon),
  maskable,
  manifest: add(
    'app',
    'webmanifest',
    'application/manifest+json; charset=utf-8',
    JSON.stringify(MANIFEST),
  ),
} as const

function add(name: string, extension: string, type: string, content: string | Buffer): string {
  const bytes = new Uint8Array(Buffer.from(content as string))
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('hex').slice(0, 12)
  const file = `${name}.${hash}.${extension}`
  ASSETS.set(file, { bytes, gzipped: Bun.gzipSync(bytes), type })
  return `/app/assets/${file}`
}

/** `file` is a name in `ASSET_PATHS`; undefined for any other. */
export function findAsset(file: string, acceptEncoding: string | null): Response | undefined {
  const asset = ASSETS.get(file)
  if (!asset) return undefined
  const isGzip = /\bgzip\b/.test(acceptEncoding ?? '')
  return new Response(isGzip ? asset.gzipped : asset.bytes, {
    headers: {
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(isGzip && { 'content-encoding': 'gzip' }),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
    },
  })
}
