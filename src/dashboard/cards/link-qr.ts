import { hasRole } from '../../accounts/roles.ts'
import { modulesOf } from '../../draw/matrix.ts'
import {
  missingProblem,
  parsePrintOptions,
  type QrOptions,
  qrQueryOf,
  sizeProblem,
  URL_CAPTION,
} from '../../draw/options.ts'
import { AppError } from '../../errors.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { canBeCapital, captionOf, contentOf, fileNameOf } from '../../qr/content.ts'
import { authorOf, ownLink, type PageContext, type Query } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { addressText, linkPath } from '../ui/link-parts.ts'
import {
  apiQueryOf,
  parseQrChoice,
  QR_ERROR_PLACES,
  type QrChoice,
  qrFields,
  scanWarning,
} from '../ui/qr-fields.ts'

/** A link's QR code: its options, a preview, downloads. Charged like pages. */

export const QR_SETTINGS_PATH = '/app/qr'

const TYPES = { png: 'image/png', svg: 'image/svg+xml', pdf: 'application/pdf' } as const

/** The QR code as a file. A refused option returns to the page, with its message at the field. */
export async function qrFile(context: PageContext, format: keyof typeof TYPES): Promise<Response> {
  const { deps, user, query, request } = context
  const link = ownLink(context)
  const address = chosenAddress(deps, link, query)
  try {
    const options = parsePrintOptions(apiQueryOf({ ...query, format }))
    const bytes = await deps.images.render(link, options, link.accountId, { address })
    // The preview is a picture of the page, and no file that somebody keeps.
    const isPreview = request.headers.get('sec-fetch-dest') === 'image'
    if (!isPreview && hasRole(user.role, 'editor')) await keepRef(context, options)
    const name = `${fileNameOf(address)}.${format}`
    return fileResponse(bytes, { name, type: TYPES[format] })
  } catch (error) {
    const isRefused = error instanceof AppError && error.status === 400
    // A program gets the error itself.
    if (!isRefused || !/\btext\/html\b/.test(request.headers.get('accept') ?? '')) throw error
    return seeOther(`${linkPath(link.code)}/qr?${new URLSearchParams(definedOf(query))}`)
  }
}

/** Analytics then shows the visits of this source as scans. */
export async function keepRef(
  context: PageContext,
  { ref }: Pick<QrOptions, 'ref'>,
): Promise<void> {
  const { qrSettings } = context.deps.data
  if (ref === undefined || qrSettings.listRefs(context.user.account.id).includes(ref)) return
  await qrSettings.addRef({ author: authorOf(context), ref })
}

const definedOf = (query: Query): Record<string, string> =>
  Object.fromEntries(Object.entries(query).flatMap(([name, text = '']) => [[name, text]]))

/** The address in the code: the displayed one, or what `alias` names; empty for the code. */
function chosenAddress({ addresses, data }: DashboardDeps, link: Link, { alias }: Query) {
  if (alias === undefined) return addresses.display(link)
  if (alias === '') return addresses.withCode(link)
  const found = data.aliases.ofLink(link.id).find((known) => addresses.textOf(known) === alias)
  if (found === undefined) throw new AppError('page_not_found')
  return addresses.alias(found)
}

/** The preview, the options and the downloads. */
export async function qrCard({ deps, user, query }: PageContext, link: Link): Promise<Html> {
  const { data, addresses } = deps
  const { code, accountId } = link
  // A removed alias is no reason to hide the page.
  const isKnown = data.aliases
    .ofLink(link.id)
    .some((known) => addresses.textOf(known) === query.alias)
  const { alias = link.alias === null ? '' : addresses.textOf(link.alias), ...others } = query
  const chosen = isKnown || query.alias === '' ? query : others
  const address = chosenAddress(deps, link, chosen)
  const hasCapitals = canBeCapital(address)
  const choice = parseQrChoice(query)
  const hasLogo = data.qrSettings.hasLogo(accountId)
  const options = {
    ...choice.options,
    // Otherwise the preview would be empty if the logo was removed meanwhile.
    logo: choice.options.logo && hasLogo,
    capitals: (hasCapitals && choice.options.capitals) || undefined,
  }
  const modules = modulesOf(contentOf(address, options), options)
  const { size } = options
  const missing = await deps.images.findMissing(captionOf(options, address), user.account.id)
  const isBare = missing.length > 0 && options.caption === URL_CAPTION
  const errors = {
    ...(size < modules && { size: sizeProblem(modules) }),
    ...(missing.length > 0 && !isBare && { caption: missingProblem(missing) }),
  }
  const shown = { ...choice, options, errors: { ...errors, ...choice.errors } }
  const path = linkPath(code)
  const page = `${path}/qr`
  return html`
    <section class="card" id="qr">
      <h2>QR code</h2>
      ${presetLinks(data.qrSettings.listPresets(accountId), page)}
      <div class="qr-side">
        ${preview(link, { address, alias: chosen.alias, modules, isBare }, shown)}
        <form method="get" action="${page}" class="form" hx-get="${page}"
          hx-trigger="input delay:250ms" hx-sync="this:replace" hx-target="#qr-preview"
          hx-select="#qr-preview" hx-swap="outerHTML"
          hx-select-oob="${QR_ERROR_PLACES.join(',')}">
          ${addressField(deps, link, alias)}
          ${qrFields(shown, { hasLogo, hasCapitals })}
          <div class="row">
            ${parts.button('Show', 'plain', { 'data-without-script': true })}
            ${Object.keys(TYPES).map((format) =>
              parts.button(`Download ${format.toUpperCase()}`, 'plain', {
                formaction: `${path}/qr.${format}`,
              }),
            )}
            <button type="button" class="button plain" hidden data-needs-script
              data-copy-image="${`${path}/qr.png`}">Copy as image</button>
            <button type="button" class="button plain" hidden data-needs-script data-print>
              Print</button>
          </div>
          ${parts.offer(
            user,
            QR_SETTINGS_PATH,
            html`<div class="row">
              ${parts.button('Save as preset…', 'plain', { formaction: QR_SETTINGS_PATH })}
              ${parts.linkButton(hasLogo ? 'Logo and presets' : 'Add a logo', QR_SETTINGS_PATH)}
            </div>`,
          )}
        </form>
      </div>
    </section>`
}

/** Absent for a link without aliases. */
function addressField({ addresses, data }: DashboardDeps, link: Link, alias: string) {
  const all = data.aliases.ofLink(link.id)
  if (all.length === 0) return false
  return parts.select({
    name: 'alias',
    label: 'Address in the code',
    value: alias,
    choices: [
      { value: '', label: addressText(addresses.withCode(link)) },
      ...all.map((one) => ({
        value: addresses.textOf(one),
        label: addressText(addresses.alias(one)),
      })),
    ],
  })
}

interface PreviewContent {
  address: string
  /** The form's field. */
  alias: string | undefined
  /** On one side of the code, with its margin. */
  modules: number
  /** No font has all letters of the short URL below the code. */
  isBare: boolean
}

const NOT_DRAWN =
  'No font of this service has all letters of the short URL: it is left out below the code.'

/** Options with a problem have no preview but the message. */
function preview(
  link: Link,
  { address, alias, modules, isBare }: PreviewContent,
  { options, errors }: QrChoice,
): Html {
  const warning = isBare ? NOT_DRAWN : scanWarning(options)
  const query = qrQueryOf({ ...options, mm: undefined })
  if (alias !== undefined) query.set('alias', alias)
  const src = `${linkPath(link.code)}/qr.svg?${query}`
  const caption =
    options.caption === '' && html`<figcaption class="code">${addressText(address)}</figcaption>`
  const problems = Object.values(errors)
  const picture = html`<figure class="printed${options.transparent ? ' see-through' : ''}"><img
    class="qr" src="${src}" width="240" alt="QR code of ${link.code}">${caption}</figure>`
  return html`
    <div id="qr-preview">
      ${
        problems.length === 0
          ? picture
          : parts.notice(
              'bad',
              html`<p>No image with these options.</p>
            <ul>${problems.map((problem) => html`<li>${problem}</li>`)}</ul>`,
            )
      }
      ${warning && problems.length === 0 && parts.notice('note', html`<p>${warning}</p>`)}
      ${printGuide(modules, options)}
    </div>`
}

/** Millimetres of a module below which many printers and phones fail. */
const MODULE_MIN_MM = 0.35

/** What the chosen size means on paper, and how to choose another one. */
function printGuide(modules: number, { mm = 40, margin }: QrOptions): Html {
  const module = mm / modules
  const codeMm = mm - 2 * margin * module
  const isSmall = module < MODULE_MIN_MM
  return html`
    <details class="print-guide">
      <summary>${mm} mm on paper: scans from ${distance(codeMm * 10)}</summary>
      <p>${
        isSmall
          ? html`<strong>Modules of ${module.toFixed(2)} mm are too small for many phones.</strong>
              Print it at least ${Math.ceil(MODULE_MIN_MM * modules)} mm wide.`
          : html`The modules are ${module.toFixed(2)} mm. Many phones need ${MODULE_MIN_MM}.`
      }</p>
      <ul>
        <li>A tenth of the distance: 3 cm for a hand, 10 cm for 1 m, 30 cm for 3 m.</li>
        <li>Leave 4 modules around the code free of text and pictures.</li>
        <li>Dark on light. Error correction Q or H for outdoors and packaging.</li>
        <li>SVG and PDF are sharp at every size. A PNG needs 12 pixels a millimetre.</li>
        <li>Scan a proof with several phones before you print many.</li>
      </ul>
    </details>`
}

const distance = (mm: number): string =>
  mm < 1000 ? `${Math.round(mm / 10)} cm` : `${(mm / 1000).toFixed(1)} m`

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
