import { AppError } from '../../errors.ts'
import type { Code } from '../../lib/code.ts'
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
  const link = ownLink(context)
  const { code, accountId } = link
  const options = parseQrOptions(apiQueryOf({ ...query, format }))
  const alias = chosenAlias(deps, link, query)
  if (alias === undefined && query.alias) throw new AppError('page_not_found')
  const text = alias === undefined ? undefined : deps.addresses.alias(alias)
  const bytes = await deps.images.render(code, options, accountId, text)
  return fileResponse(bytes, { name: `${code}.${format}`, type: TYPES[format] })
}

/** The alias that the code contains in place of the short URL. */
const chosenAlias = ({ aliases }: DashboardDeps, { id }: Link, { alias }: Query) =>
  aliases.ofLink(id).find((path) => path === alias)

/** The preview, the options and the downloads. */
export function qrCard(deps: DashboardDeps, link: Link, query: Query): Html {
  const { qrStore } = deps
  const { code, accountId } = link
  const alias = chosenAlias(deps, link, query)
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
        ${preview(deps, { code, alias, options: shown })}
        <form ${previewForm}>
          ${addressField(deps, link, alias)}${qrFields(choice, hasLogo)}
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

/** Absent for a link without aliases. */
function addressField({ addresses, aliases }: DashboardDeps, { id, code }: Link, alias?: string) {
  const paths = aliases.ofLink(id)
  if (paths.length === 0) return false
  return parts.select({
    name: 'alias',
    label: 'Address in the code',
    value: alias ?? '',
    choices: [
      { value: '', label: bare(addresses.short(code)) },
      ...paths.map((path) => ({ value: path, label: bare(addresses.alias(path)) })),
    ],
  })
}

interface PreviewProps {
  code: Code
  alias: string | undefined
  options: QrOptions
}

function preview({ addresses }: DashboardDeps, { code, alias, options }: PreviewProps): Html {
  const warning = scanWarning(options)
  const query = qrQueryOf(options)
  if (alias !== undefined) query.set('alias', alias)
  const src = `${linkPath(code)}/qr.svg?${query}`
  const address = alias === undefined ? addresses.short(code) : addresses.alias(alias)
  const caption =
    options.caption === '' && html`<figcaption class="code">${bare(address)}</figcaption>`
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
  return links.length > 0 && html`<ul class="row" aria-label="Presets">${links}</ul>`
}
