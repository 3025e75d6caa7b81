import { attributes, type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { parseQrOptions, type QrOptions, qrQueryOf } from '../../qr/options.ts'
import { ownLink, type PageContext, type Query } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages } from '../page-routes.ts'
import { fileResponse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { bare, linkPath } from '../ui/link-parts.ts'
import { apiQueryOf, parseQrChoice, qrFields, scanWarning } from '../ui/qr-fields.ts'
import { QR_SETTINGS_PATH } from './qr-settings.ts'

/** A link's QR code: its options, a preview, downloads. Charged like pages. */

const TYPES = { png: 'image/png', svg: 'image/svg+xml' } as const

export const linkQrFiles = signedInPages({
  'GET /app/links/:code/qr.png': (context) => qrFile(context, 'png'),
  'GET /app/links/:code/qr.svg': (context) => qrFile(context, 'svg'),
})

async function qrFile(context: PageContext, format: keyof typeof TYPES) {
  const { deps, query } = context
  const { code, accountId } = ownLink(context)
  const options = parseQrOptions(apiQueryOf({ ...query, format }))
  const bytes = await deps.images.render(code, options, accountId)
  return fileResponse(bytes, { name: `${code}.${format}`, type: TYPES[format] })
}

/** The preview, the options and the downloads. */
export function qrCard({ qrStore, addresses }: DashboardDeps, link: Link, query: Query): Html {
  const { code, accountId } = link
  const choice = parseQrChoice(query)
  const hasLogo = qrStore.hasLogo(accountId)
  // Otherwise the preview would be empty if the logo was removed meanwhile.
  const shown = { ...choice.options, logo: choice.options.logo && hasLogo }
  const path = linkPath(code)
  const previewForm = attributes({
    method: 'get',
    action: path,
    class: 'form',
    'hx-get': path,
    'hx-trigger': 'input delay:250ms',
    'hx-sync': 'this:replace',
    'hx-target': '#qr-preview',
    'hx-select': '#qr-preview',
    'hx-swap': 'outerHTML',
  })
  return html`
    <section class="card" id="qr">
      <h2>QR code</h2>
      ${presetLinks(qrStore.listPresets(accountId), path)}
      <div class="qr-side">
        ${preview(code, addresses.short(code), shown)}
        <form ${previewForm}>
          ${qrFields(choice, hasLogo)}
          <div class="row">
            ${parts.button('Show', 'plain', { 'data-without-script': true })}
            ${parts.button('Download PNG', 'plain', { formaction: `${path}/qr.png` })}
            ${parts.button('Download SVG', 'plain', { formaction: `${path}/qr.svg` })}
            <button type="button" class="button plain" hidden data-needs-script
              data-copy-image="${`${path}/qr.png`}">Copy as image</button>
            <button type="button" class="button plain" hidden data-needs-script data-print>
              Print</button>
          </div>
          <div class="row">
            ${parts.button('Save as preset…', 'plain', { formaction: QR_SETTINGS_PATH })}
            ${parts.linkButton(hasLogo ? 'Logo and presets' : 'Add a logo', QR_SETTINGS_PATH)}
          </div>
        </form>
      </div>
    </section>`
}

function preview(code: string, shortUrl: string, options: QrOptions): Html {
  const warning = scanWarning(options)
  const src = `${linkPath(code)}/qr.svg?${qrQueryOf(options)}`
  const caption =
    options.caption === '' && html`<figcaption class="code">${bare(shortUrl)}</figcaption>`
  const image = attributes({ class: 'qr', src, width: 240, alt: `QR code of ${code}` })
  return html`
    <div id="qr-preview">
      <figure class="printed"><img ${image}>${caption}</figure>
      ${warning && parts.notice('note', html`<p>${warning}</p>`)}
    </div>`
}

function presetLinks(
  presets: readonly { name: string; options: QrOptions }[],
  path: string,
): Html | false {
  const links = presets.map(({ name, options }) => {
    const href = `${path}?${qrQueryOf(options)}#qr`
    return html`<li><a class="button plain" href="${href}">${name}</a></li>`
  })
  return links.length > 0 && html`<ul class="row qr-presets" aria-label="Presets">${links}</ul>`
}
