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
import { fileAnswer } from '../answers.ts'
import { signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import { linkPath, qrPicture } from '../ui/link-parts.ts'
import { scanWarning } from '../ui/qr-contrast.ts'

/** A link's QR code: chosen size and colors, a preview, files. Charged like pages. */

type Query = Readonly<Record<string, string | undefined>>

const TYPES = { png: 'image/png', svg: 'image/svg+xml' } as const

export const linkQrFiles = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.linkQr', prefix: '/app/links' })
    .use(signedIn(deps))
    .get('/:code/qr.png', ({ account, params, query }) =>
      qrFile(deps, requireOwnedLink(deps, account, params.code), { ...query, format: 'png' }),
    )
    .get('/:code/qr.svg', ({ account, params, query }) =>
      qrFile(deps, requireOwnedLink(deps, account, params.code), { ...query, format: 'svg' }),
    )

async function qrFile({ images }: DashboardDeps, { code }: Link, query: Query) {
  const options = parseQrOptions(query)
  const { format } = options
  const bytes = await images.render(code, options)
  return fileAnswer(bytes, { name: `${code}.${format}`, type: TYPES[format] })
}

interface Chosen {
  options: Pick<QrOptions, 'size' | 'dark' | 'light'>
  /** What the size field shows, good or bad. */
  sizeText: string
  sizeError?: string | undefined
}

const SIZE_TEXT_MAX = 20

/** A bad size is shown with its fault; a bad color, which no color field sends, is the default. */
export function chooseQr(query: Query): Chosen {
  const { shape } = QrQuery
  const size = shape.size.safeParse(query.size)
  const color = (name: 'dark' | 'light') =>
    shape[name].safeParse(query[name]).data ?? shape[name].parse(undefined)
  const options = { size: size.data ?? 512, dark: color('dark'), light: color('light') }
  const sizeText = (query.size ?? String(options.size)).slice(0, SIZE_TEXT_MAX)
  return { options, sizeText, sizeError: size.error?.issues[0]?.message }
}

/** The preview, the choices and the files. */
export function qrCard({ code }: Link, shortUrl: string, chosen: Chosen): Html {
  const { dark, light } = chosen.options
  const warning = scanWarning({ dark, light })
  const query = `?${new URLSearchParams({ dark, light })}`
  const path = linkPath(code)
  const all = {
    ...{ method: 'get', action: path, class: 'form' },
    ...{ 'hx-get': path, 'hx-trigger': 'input changed delay:250ms', 'hx-sync': 'this:replace' },
    ...{ 'hx-target': '#qr-preview', 'hx-select': '#qr-preview', 'hx-swap': 'outerHTML' },
  }
  return html`
    <section class="card" id="qr">
      <h2>QR code</h2>
      <div class="qr-side">
        <div id="qr-preview">
          <figure class="printed">
            ${qrPicture(code, { size: 240, query })}
            <figcaption class="code">${shortUrl.replace(/^https?:\/\//, '')}</figcaption>
          </figure>
          ${warning && parts.notice('note', html`<p>${warning}</p>`)}
        </div>
        <form ${attributes(all)}>
          ${parts.field({
            ...{ name: 'size', label: 'Size of the PNG in pixels', value: chosen.sizeText },
            ...{ type: 'number', error: chosen.sizeError, autocomplete: 'off' },
            ...{ hint: `${SIZE_MIN_PX} to ${SIZE_MAX_PX}. An SVG is sharp at every size.` },
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
    <label for="${`field-${name}`}">${label}</label>
    <input type="color" ${attributes({ id: `field-${name}`, name, value })}>
  </div>`
