import { hasRole } from '../../accounts/roles.ts'
import { modulesOf } from '../../draw/matrix.ts'
import {
  missingProblem,
  parsePrintOptions,
  type QrOptions,
  sizeProblem,
  URL_CAPTION,
} from '../../draw/options.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { canBeCapital, captionOf, contentOf, fileNameOf } from '../../qr/content.ts'
import { authorOf, ownLink, type PageContext, type Query } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { icon } from '../ui/icons.ts'
import { addressText, linkPath } from '../ui/link-parts.ts'
import {
  apiQueryOf,
  formQueryOf,
  parseQrChoice,
  QR_ERROR_PLACES,
  type QrChoice,
  qrFields,
  scanWarning,
} from '../ui/qr-fields.ts'
import { refsOf } from './hits.ts'

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
    if (!isPreview && hasRole(user.role, 'editor')) {
      await keepPrinted(context, [link])
      await keepRef(context, options)
    }
    const name = `${fileNameOf(address)}.${format}`
    return fileResponse(bytes, { name, type: TYPES[format] })
  } catch (error) {
    const isRefused = error instanceof AppError && error.status === 400
    // A program gets the error itself.
    if (!isRefused || !/\btext\/html\b/.test(request.headers.get('accept') ?? '')) throw error
    return seeOther(`${linkPath(link.code)}/qr?${new URLSearchParams(definedOf(query))}`)
  }
}

/** The destination of a printed code is checked even if nobody follows it. */
export async function keepPrinted(
  context: PageContext,
  links: readonly Pick<Link, 'id'>[],
): Promise<void> {
  const { checks } = context.deps.data
  const linkIds = checks.unprinted(links.map(({ id }) => id))
  if (linkIds.length === 0) return
  // The file does not need it: a full disk must not refuse the download.
  await checks.notePrinted({ author: authorOf(context), linkIds }).catch(() => {})
}

/** Analytics then shows the visits of this source as scans. */
export async function keepRef(
  context: PageContext,
  { ref }: Pick<QrOptions, 'ref'>,
): Promise<void> {
  if (ref === undefined || refsOf(context).includes(ref)) return
  await context.deps.data.qrSettings.addRef({ author: authorOf(context), ref })
}

export const definedOf = (query: Query): Record<string, string> =>
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
  const { isBare, errors: ofCaption } = await captionState({ deps, user }, options, address)
  const errors = { ...(size < modules && { size: sizeProblem(modules) }), ...ofCaption }
  const shown = { ...choice, options, errors: { ...errors, ...choice.errors } }
  const path = linkPath(code)
  const page = `${path}/qr`
  const drawn = formQueryOf({ ...options, mm: undefined })
  if (chosen.alias !== undefined) drawn.set('alias', chosen.alias)
  const image = `${path}/qr.svg?${drawn}`
  return html`
    <section class="card" id="qr">
      <h2 class="visually-hidden">QR code</h2>
      <div class="qr-side">
        <form method="get" action="${page}" class="form" id="qr-options" hx-get="${page}"
          ${LIVE_PREVIEW}>
          ${presetLinks(data.qrSettings.listPresets(accountId), page)}
          ${addressField(deps, link, alias)}
          ${qrFields(shown, { hasLogo, hasCapitals })}
          <div class="row">
            ${parts.button('Show', 'plain', { 'data-without-script': true })}
            ${parts.offer(user, QR_SETTINGS_PATH, [
              parts.button('Save as preset…', 'plain', { formaction: QR_SETTINGS_PATH }),
              parts.button(hasLogo ? 'Replace the logo…' : 'Add a logo…', 'plain', {
                formaction: QR_SETTINGS_PATH,
                name: 'link',
                value: code,
              }),
            ])}
          </div>
        </form>
        <div class="qr-aside">
          ${qrPreview({ image, address, isBare }, shown)}
          ${downloads(path)}
          ${printGuide(modules, options)}
        </div>
      </div>
    </section>`
}

/** Attributes of a form of options: a change replaces the preview and the messages of options. */
export const LIVE_PREVIEW = attributes({
  'hx-trigger': 'input delay:250ms',
  'hx-sync': 'this:replace',
  'hx-target': '#qr-preview',
  'hx-select': '#qr-preview',
  'hx-swap': 'outerHTML',
  'hx-select-oob': [...QR_ERROR_PLACES, '#qr-guide'].join(','),
})

const FILES: Readonly<Record<keyof typeof TYPES, string>> = {
  png: 'PNG, for screens and documents',
  svg: 'SVG, for print at every size',
  pdf: 'PDF, in the width on paper',
}

/**
 * Outside of the form of options, which they send: htmx follows the clicks inside of it. The
 * browser opens the menu, also without scripts.
 */
const downloads = (path: string): Html => html`
  <div class="row">
    <button type="button" class="button primary" popovertarget="download-menu">
      Download ${icon('chevron-down')}</button>
    <div id="download-menu" class="menu" popover>
      ${Object.entries(FILES).map(([format, label]) => {
        const all = { class: 'menu-item', form: 'qr-options', formaction: `${path}/qr.${format}` }
        return html`<button ${attributes(all)}>${label}</button>`
      })}
    </div>
    <button type="button" class="button plain" hidden data-needs-script form="qr-options"
      data-copy-image="${`${path}/qr.png`}">Copy as image</button>
    <button type="button" class="button plain" hidden data-needs-script data-print>Print</button>
  </div>`

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

const NOT_DRAWN =
  'No font of this service has all letters of the short URL: it is left out below the code.'

/** What of the text below the code no font has: the error of an own text, or a bare short URL. */
export async function captionState(
  { deps, user }: Pick<PageContext, 'deps' | 'user'>,
  options: Pick<QrOptions, 'caption'>,
  address: string,
): Promise<{ isBare: boolean; errors: { caption?: string } }> {
  const missing = await deps.images.findMissing(captionOf(options, address), user.account.id)
  const isUrl = options.caption === URL_CAPTION
  return {
    isBare: missing.length > 0 && isUrl,
    errors: missing.length > 0 && !isUrl ? { caption: missingProblem(missing) } : {},
  }
}

/** `image`: the path of the picture. Options with a problem have the message instead. */
export function qrPreview(
  { image, address, isBare }: { image: string; address: string; isBare: boolean },
  { options, errors }: QrChoice,
): Html {
  const warning = isBare ? NOT_DRAWN : scanWarning(options)
  const shown = addressText(address)
  const caption = options.caption === '' && html`<figcaption class="code">${shown}</figcaption>`
  const problems = Object.values(errors)
  const picture = html`<figure class="printed${options.transparent ? ' see-through' : ''}"><img
    class="qr" src="${image}" width="360" alt="QR code of ${shown}">${caption}</figure>`
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
    </div>`
}

/** Millimetres of a module below which many printers and phones fail. */
const MODULE_MIN_MM = 0.35

/**
 * What the chosen size means on paper, and how to choose another one. `modules`: on one side, with
 * the margin.
 */
export function printGuide(modules: number, { mm = 40, margin }: QrOptions): Html {
  const module = mm / modules
  const codeMm = mm - 2 * margin * module
  const isSmall = module < MODULE_MIN_MM
  return html`
    <details class="print-guide" id="qr-guide">
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
    const href = `${path}?${formQueryOf(options)}#qr`
    return html`<li><a class="button plain" href="${href}">${name}</a></li>`
  })
  return links.length > 0 && html`<ul class="row" aria-label="Presets">${links}</ul>`
}
