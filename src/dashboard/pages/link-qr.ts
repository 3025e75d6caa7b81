import { Elysia } from 'elysia'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { requireOwnedLink } from '../../links/update.ts'
import {
  parseQrOptions,
  type QrOptions,
  QrQuery,
  SIZE_MAX_PX,
  SIZE_MIN_PX,
} from '../../qr/options.ts'
import { signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { bare, linkPath, qrPicture } from '../ui/link-parts.ts'

/** A link's QR code: size and colors, a preview, downloads. Charged like pages. */

type Query = Readonly<Record<string, string | undefined>>

const TYPES = { png: 'image/png', svg: 'image/svg+xml' } as const

export const linkQrFiles = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.linkQr', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/:code/qr.png', ({ user, params, query }) =>
      qrFile(deps, requireOwnedLink(deps, user.account, params.code), { ...query, format: 'png' }),
    )
    .get('/:code/qr.svg', ({ user, params, query }) =>
      qrFile(deps, requireOwnedLink(deps, user.account, params.code), { ...query, format: 'svg' }),
    )

async function qrFile({ images }: DashboardDeps, { code, accountId }: Link, query: Query) {
  const options = parseQrOptions(query)
  const { format } = options
  const bytes = await images.render(code, options, accountId)
  return fileResponse(bytes, { name: `${code}.${format}`, type: TYPES[format] })
}

interface QrChoice {
  options: Pick<QrOptions, 'size' | 'dark' | 'light'>
  /** The content of the size field, valid or not. */
  sizeText: string
  sizeError?: string | undefined
}

const SIZE_TEXT_MAX = 20

/** A bad size is shown with its error. A bad color, which no color field sends, is the default. */
export function parseQrChoice(query: Query): QrChoice {
  const { shape } = QrQuery
  const size = shape.size.safeParse(query.size)
  const color = (name: 'dark' | 'light') =>
    shape[name].safeParse(query[name]).data ?? shape[name].parse(undefined)
  const options = { size: size.data ?? 512, dark: color('dark'), light: color('light') }
  const sizeText = (query.size ?? String(options.size)).slice(0, SIZE_TEXT_MAX)
  return { options, sizeText, sizeError: size.error?.issues[0]?.message }
}

/** The preview, the options and the downloads. */
export function qrCard({ code }: Link, shortUrl: string, choice: QrChoice): Html {
  const { dark, light } = choice.options
  const warning = scanWarning({ dark, light })
  const query = `?${new URLSearchParams({ dark, light })}`
  const path = linkPath(code)
  const previewForm = attributes({
    method: 'get',
    action: path,
    class: 'form',
    'hx-get': path,
    'hx-trigger': 'input changed delay:250ms',
    'hx-sync': 'this:replace',
    'hx-target': '#qr-preview',
    'hx-select': '#qr-preview',
    'hx-swap': 'outerHTML',
  })
  return html`
    <section class="card" id="qr">
      <h2>QR code</h2>
      <div class="qr-side">
        <div id="qr-preview">
          <figure class="printed">
            ${qrPicture(code, { size: 240, query })}
            <figcaption class="code">${bare(shortUrl)}</figcaption>
          </figure>
          ${warning && parts.notice('note', html`<p>${warning}</p>`)}
        </div>
        <form ${previewForm}>
          ${parts.field({
            name: 'size',
            label: 'Size of the PNG in pixels',
            value: choice.sizeText,
            type: 'number',
            error: choice.sizeError,
            autocomplete: 'off',
            hint: `${SIZE_MIN_PX} to ${SIZE_MAX_PX}. An SVG is sharp at every size.`,
            extra: { min: SIZE_MIN_PX, max: SIZE_MAX_PX, step: 1 },
          })}
          <div class="colors">
            ${colorField('dark', 'Foreground', dark)}
            ${colorField('light', 'Background', light)}
          </div>
          <div class="row">
            ${parts.button('Show', 'plain', { 'data-without-script': true })}
            ${parts.button('Download PNG', 'primary', { formaction: `${path}/qr.png` })}
            ${parts.button('Download SVG', 'plain', { formaction: `${path}/qr.svg` })}
            <button type="button" class="button plain" hidden data-needs-script data-print>
              Print</button>
          </div>
        </form>
      </div>
    </section>`
}

const colorField = (name: string, label: string, value: string): Html => html`
  <div class="field">
    <label for="field-${name}">${label}</label>
    <input type="color" ${attributes({ id: `field-${name}`, name, value })}>
  </div>`

/** The smallest difference in reflectance that ISO/IEC 15415 grades C, which readers often need. */
const DIFFERENCE_MIN = 0.4

/** Why two colors, both `#rrggbb`, make a code hard to scan; undefined for good ones. */
function scanWarning({ dark, light }: { dark: string; light: string }): string | undefined {
  const difference = luminance(light) - luminance(dark)
  if (difference >= DIFFERENCE_MIN) return undefined
  return difference < 0
    ? 'The modules are lighter than the background: many cameras cannot read this.'
    : 'The two colors are too similar: cameras may fail to read this.'
}

/** Relative luminance (WCAG 2.2): 0 is black, 1 is white. */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
