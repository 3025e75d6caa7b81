import { modulesOf } from '../../draw/matrix.ts'
import { missingProblem, parsePrintOptions, QrQuery, qrQueryOf } from '../../draw/options.ts'
import { AppError } from '../../errors.ts'
import { type Code, toCode } from '../../lib/code.ts'
import { type Html, html } from '../../lib/html.ts'
import { contentOf } from '../../qr/content.ts'
import { PRESETS_MAX } from '../../qr/store.ts'
import { authorOf, type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import {
  captionState,
  definedOf,
  keepRef,
  LIVE_PREVIEW,
  printGuide,
  QR_SETTINGS_PATH,
  qrPreview,
} from '../cards/link-qr.ts'
import { deleteColumn, deleteNamed, nameField, requireName } from '../cards/named-rows.ts'
import { safeNext } from '../errors.ts'
import { editor, signedInPages, viewer } from '../page-routes.ts'
import { fileResponse, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { errorOf, type Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import { linkPath } from '../ui/link-parts.ts'
import {
  apiQueryOf,
  describeOptions,
  formQueryOf,
  parseQrChoice,
  qrFields,
} from '../ui/qr-fields.ts'

/** The form around the file needs the rest of 64 KiB. */
const LOGO_BYTES_MAX = 60 * 1024

/** The account's logo and presets. */
export const qrSettingsPages = signedInPages({
  'GET /app/qr': editor(settingsPage, {
    offers: [{ label: 'QR codes', section: 'account', words: 'logo presets caption colors' }],
  }),
  'GET /app/qr/logo.png': viewer(({ deps, user }) => {
    const logo = deps.data.qrSettings.findLogo(user.account.id)
    if (!logo) throw new AppError('page_not_found')
    return fileResponse(new Uint8Array(logo.png), { name: 'logo.png', type: 'image/png' })
  }),
  'GET /app/qr/preview.svg': editor(async ({ deps, user, query }) => {
    const options = parsePrintOptions(apiQueryOf({ ...query, format: 'svg' }))
    const address = exampleAddress({ deps, user })
    const svg = await deps.images.renderText(address, options, user.account.id)
    return fileResponse(svg, { name: 'preview.svg', type: 'image/svg+xml' })
  }),
  'POST /app/qr/logo': editor(saveLogo, settingsPage),
  'POST /app/qr/logo/remove': editor(async (context) => {
    spendWrite(context)
    await context.deps.data.qrSettings.removeLogo({ author: authorOf(context) })
    return `${QR_SETTINGS_PATH}?done=removed`
  }),
  'POST /app/qr/presets': editor(savePreset, settingsPage),
  'POST /app/qr/presets/delete': editor(async (context) => {
    await deleteNamed(context, 'preset', context.deps.data.qrSettings.deletePreset)
    return `${QR_SETTINGS_PATH}?done=deleted`
  }),
})

async function saveLogo(context: PageContext): Promise<string> {
  const { deps, user, form } = context
  const { data, images } = deps
  const accountId = user.account.id
  spendWrite(context)
  const file = form.file('logo')
  if (!file) throw refuseAt('logo', 'Choose a file.')
  if (file.size > LOGO_BYTES_MAX) throw refuseAt('logo', 'The file is larger than 60 kB.')
  const { admit, count } = searchesOf(context)
  const tried = await images.checkLogo(await file.bytes(), { accountId, admit })
  if (tried.wasSearched) count()
  if ('problem' in tried) throw refuseAt('logo', tried.problem)
  await data.qrSettings.saveLogo({ author: authorOf(context), png: tried.png })
  return safeNext(form.text('next')) ?? `${QR_SETTINGS_PATH}?done=logo`
}

/**
 * The QR code of the link whose page led here, with the options that were chosen there. Empty
 * without a link.
 */
function pageBefore({ query, form }: PageContext, change: Query = {}): string {
  const { link = '', ...options } = query
  const code = toCode(link)
  if (!code) return form.text('next')
  return `${linkPath(code)}/qr?${new URLSearchParams(definedOf({ ...options, ...change }))}`
}

/** Searches for a code by the account. `admit` throws `too_many_attempts`. */
function searchesOf({ deps: { throttle }, user: { account } }: PageContext) {
  const attempts = [{ gate: 'qrSearch', key: String(account.id) }] as const
  return { admit: () => throttle.require(attempts), count: () => throttle.count(attempts) }
}

const OPTION_FIELDS = [...QrQuery.keyof().options, 'captionText']

/** The form's fields. An empty one is absent, but a cleared `ref` has no default. */
function presetQuery(form: Form): Query {
  const names = ['name', ...OPTION_FIELDS].filter(
    (name) => form.text(name) !== '' || name === 'ref',
  )
  return Object.fromEntries(names.map((name) => [name, form.text(name)]))
}

async function savePreset(context: PageContext): Promise<string> {
  const { deps, user, form } = context
  const { data, images } = deps
  const accountId = user.account.id
  spendWrite(context)
  const query = presetQuery(form)
  const name = requireName(context)
  const options = parsePrintOptions(apiQueryOf(query))
  const png = options.logo ? data.qrSettings.findLogo(accountId)?.png : undefined
  if (options.logo && !png) throw refuseAt('name', 'The account has no logo.')
  const missing = await images.findMissing(options.caption, accountId)
  if (missing.length > 0) throw new AppError('invalid_value', missingProblem(missing))
  const { admit, count } = searchesOf(context)
  const isReadable = await images.isReadable({ options, png }, { accountId, admit })
  count()
  if (!isReadable) throw refuseAt('name', UNREADABLE)
  const preset = { name, options: String(qrQueryOf(options)) }
  if (!(await data.qrSettings.savePreset({ author: authorOf(context), ...preset }))) {
    throw refuseAt('name', `An account has at most ${PRESETS_MAX} presets. Delete one first.`)
  }
  await keepRef(context, options)
  return `${QR_SETTINGS_PATH}?done=preset`
}

const UNREADABLE =
  'QR readers cannot read codes with these options. Use a darker foreground on a lighter ' +
  'background.'

const DONE = {
  logo: 'The logo is saved.',
  removed: 'The logo is removed. Codes that are already printed keep it.',
  preset: 'The preset is saved. Choose it in the QR section of a link.',
  deleted: 'The preset is deleted.',
}

async function settingsPage(context: PageContext): Promise<Response> {
  const before = safeNext(pageBefore(context))
  return page(context, {
    title: 'QR codes',
    at: QR_SETTINGS_PATH,
    ...(before && { back: { href: before, label: 'QR code of the link' } }),
    messages: DONE,
    main: html`
      ${logoCard(context)}
      ${presetsCard(context)}
      ${await newPresetCard(context)}`,
  })
}

function logoCard(context: PageContext): Html {
  const { deps, user, refusal } = context
  const hasLogo = deps.data.qrSettings.hasLogo(user.account.id)
  return parts.card('Logo', [
    html`<p>The logo appears in the middle of the codes for which you choose it, in the dashboard or
      with <code>logo=1</code> in the API.</p>`,
    hasLogo &&
      html`<div class="row"><img class="qr" src="${QR_SETTINGS_PATH}/logo.png" alt="Your logo"
        width="96">
        ${parts.buttonForm(user, `${QR_SETTINGS_PATH}/logo/remove`, 'Remove')}</div>`,
    parts.form(
      user,
      `${QR_SETTINGS_PATH}/logo`,
      [
        parts.field({
          name: 'logo',
          label: hasLogo ? 'Replace it' : 'File',
          type: 'file',
          required: true,
          hint: html`PNG of at most 60 kB and 1024 × 1024 pixels<span hidden data-needs-script>, or
            an SVG, which your browser draws as a PNG</span>. We check that codes with it can be
            read.`,
          error: errorOf(refusal, 'logo'),
          extra: { accept: '.png,.svg,image/png,image/svg+xml', 'data-logo': true },
        }),
        parts.hiddenFields({ next: pageBefore(context, { logo: '1' }) }),
        parts.button('Upload'),
      ],
      { enctype: 'multipart/form-data' },
    ),
  ])
}

function presetsCard(context: PageContext): Html {
  const { deps, user } = context
  const presets = deps.data.qrSettings.listPresets(user.account.id)
  return parts.card(
    'Presets',
    presets.length > 0
      ? parts.table('Your presets', presets, {
          Name: ({ name }) => name,
          Options: ({ options }) => describeOptions(options),
          'Delete it': deleteColumn(context, `${QR_SETTINGS_PATH}/presets/delete`, 'preset'),
        })
      : html`<p>A preset keeps your colors, logo and caption under a name. Create the first one
          below, or from the QR section of a link.</p>`,
  )
}

async function newPresetCard(context: PageContext): Promise<Html> {
  const { deps, user, query, form, refusal } = context
  const shown = refusal ? presetQuery(form) : query
  const hasLogo = deps.data.qrSettings.hasLogo(user.account.id)
  const found = parseQrChoice(shown)
  const address = exampleAddress({ deps, user })
  const { isBare, errors } = await captionState({ deps, user }, found.options, address)
  const options = { ...found.options, logo: found.options.logo && hasLogo }
  const choice = { ...found, options, errors: { ...errors, ...found.errors } }
  const modules = modulesOf(contentOf(address, choice.options), choice.options)
  const image = `${QR_SETTINGS_PATH}/preview.svg?${formQueryOf(choice.options)}`
  const fields = parts.form(
    user,
    `${QR_SETTINGS_PATH}/presets`,
    [
      nameField(context, 'preset', { initial: shown.name }),
      qrFields(choice, { hasLogo, hasCapitals: true }),
      parts.button('Save preset'),
    ],
    { id: 'qr-options' },
  )
  return parts.card(
    'New preset',
    html`<div class="qr-side">
      <div hx-get="${QR_SETTINGS_PATH}" hx-include="#qr-options" hx-params="not csrf"
        ${LIVE_PREVIEW}>${fields}</div>
      <div class="qr-aside">${qrPreview({ image, address, isBare }, choice)}
        ${printGuide(modules, choice.options)}</div>
    </div>`,
  )
}

/** An address such as the codes of the account have. */
const exampleAddress = ({ deps, user }: Pick<PageContext, 'deps' | 'user'>): string =>
  deps.addresses.withCode({
    code: 'EXAMPLE1' as Code,
    typedCode: null,
    domainId: deps.data.domains.defaultOf(user.account.id),
  })
