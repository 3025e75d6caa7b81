import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { parseQrOptions, qrQueryOf } from '../../qr/options.ts'
import { PRESETS_MAX } from '../../qr/store.ts'
import { type CurrentUser, type Query, signedIn, spendWrite, tryWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import type { Form } from '../ui/form.ts'
import { page } from '../ui/layout.ts'
import {
  apiQueryOf,
  describeOptions,
  parseQrChoice,
  qrFields,
  scanWarning,
} from '../ui/qr-fields.ts'

export const QR_SETTINGS_PATH = '/app/qr'

/** The form around the file needs the rest of 64 KiB. */
const LOGO_BYTES_MAX = 60 * 1024
const NAME_LENGTH_MAX = 40

/** The account's logo and presets. */
export const qrSettingsPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.qrSettings', prefix: QR_SETTINGS_PATH })
    .use(signedIn(deps))
    .get('', ({ user, query }) => settingsPage(deps, user, { query }))
    .get('/logo.png', ({ user }) => {
      const logo = deps.qrStore.findLogo(user.account.id)
      if (!logo) throw new AppError('page_not_found')
      const png = new Uint8Array(logo.png)
      return fileResponse(png, { name: 'logo.png', type: 'image/png' })
    })
    .post('/logo', async ({ user, form }) => {
      const saved = await tryWrite(deps, user, () => saveLogo(deps, user, form.file('logo')))
      if ('error' in saved) return settingsPage(deps, user, { query: {}, error: saved.error })
      if (saved.done) return settingsPage(deps, user, { query: {}, logoError: saved.done })
      return seeOther(`${QR_SETTINGS_PATH}?done=logo`)
    })
    .post('/logo/remove', async ({ user }) => {
      spendWrite(deps, user.account)
      await deps.writer.call('removeQrLogo', { accountId: user.account.id })
      return seeOther(`${QR_SETTINGS_PATH}?done=removed`)
    })
    .post('/presets', async ({ user, form }) => {
      const query = presetQuery(form)
      const saved = await tryWrite(deps, user, () => savePreset(deps, user, query))
      if ('error' in saved) return settingsPage(deps, user, { query, error: saved.error })
      if (saved.done) return settingsPage(deps, user, { query, presetError: saved.done })
      return seeOther(`${QR_SETTINGS_PATH}?done=preset`)
    })
    .post('/presets/delete', async ({ user, form }) => {
      spendWrite(deps, user.account)
      const id = Number(form.text('preset'))
      if (Number.isSafeInteger(id)) {
        await deps.writer.call('deleteQrPreset', { accountId: user.account.id, id })
      }
      return seeOther(`${QR_SETTINGS_PATH}?done=deleted`)
    })

/** Returns why the file is refused; undefined once it is stored. */
async function saveLogo(
  { images, writer, clock }: DashboardDeps,
  { account }: CurrentUser,
  file: File | undefined,
): Promise<string | undefined> {
  if (!file) return 'Choose a file.'
  if (file.size > LOGO_BYTES_MAX) return 'The file is larger than 60 kB.'
  const tried = await images.checkLogo(account.id, await file.bytes())
  if ('problem' in tried) return tried.problem
  await writer.call('saveQrLogo', { accountId: account.id, png: tried.png, now: clock() })
  return undefined
}

const OPTION_FIELDS = ['size', 'dark', 'light', 'margin', 'level', 'logo', 'caption', 'captionText']

/** The form's fields. An empty one is absent. */
function presetQuery(form: Form): Query {
  const names = ['name', ...OPTION_FIELDS].filter((name) => form.text(name) !== '')
  return Object.fromEntries(names.map((name) => [name, form.text(name)]))
}

/** Returns why the preset is refused; undefined once it is stored. Throws for a bad option. */
async function savePreset(
  deps: DashboardDeps,
  { account }: CurrentUser,
  query: Query,
): Promise<string | undefined> {
  const { qrStore, images, writer, clock } = deps
  const { name = '' } = query
  if (name === '' || name.length > NAME_LENGTH_MAX) {
    return `Enter a name of at most ${NAME_LENGTH_MAX} characters.`
  }
  const options = parseQrOptions(apiQueryOf(query))
  const png = options.logo ? qrStore.findLogo(account.id)?.png : undefined
  if (options.logo && !png) return 'The account has no logo.'
  if (!(await images.isReadable(account.id, { options, png }))) {
    return (
      'QR readers cannot read codes with these options. Use a darker foreground on a lighter ' +
      'background.'
    )
  }
  const preset = { accountId: account.id, name, options: String(qrQueryOf(options)), now: clock() }
  if (await writer.call('saveQrPreset', preset)) return undefined
  return `An account has at most ${PRESETS_MAX} presets. Delete one first.`
}

const DONE = {
  logo: 'The logo is saved.',
  removed: 'The logo is removed. Codes that are already printed keep it.',
  preset: 'The preset is saved. Choose it in the QR section of a link.',
  deleted: 'The preset is deleted.',
}

interface SettingsPageProps {
  /** The fields of a new preset, and `done`. */
  query: Query
  error?: AppError
  logoError?: string
  presetError?: string
}

function settingsPage(deps: DashboardDeps, user: CurrentUser, props: SettingsPageProps): Response {
  const { query, error, logoError, presetError } = props
  return page(user, {
    title: 'QR codes',
    current: 'account',
    back: { href: '/app/account', label: 'Account' },
    messages: DONE,
    done: query.done,
    error,
    isRefused: Boolean(logoError || presetError),
    main: html`
      <div class="columns cards">
        ${logoCard(deps, user, logoError)}
        ${presetsCard(deps, user)}
      </div>
      ${newPresetCard(deps, user, query, presetError)}`,
  })
}

function logoCard({ qrStore }: DashboardDeps, user: CurrentUser, error?: string): Html {
  const hasLogo = qrStore.hasLogo(user.account.id)
  const image = { src: `${QR_SETTINGS_PATH}/logo.png`, alt: 'Your logo', class: 'qr', width: 96 }
  return parts.card('Logo', [
    html`<p>The logo appears in the middle of the codes for which you choose it, in the dashboard or
      with <code>logo=1</code> in the API.</p>`,
    hasLogo &&
      html`<div class="row"><img ${attributes(image)}>
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
          error,
          extra: { accept: '.png,.svg,image/png,image/svg+xml', 'data-logo': true },
        }),
        parts.button('Upload'),
      ],
      { enctype: 'multipart/form-data' },
    ),
  ])
}

function presetsCard({ qrStore }: DashboardDeps, user: CurrentUser): Html {
  const presets = qrStore.listPresets(user.account.id)
  const deleteButton = ({ id, name }: { id: number; name: string }) =>
    parts.buttonForm(user, `${QR_SETTINGS_PATH}/presets/delete`, 'Delete', {
      values: { preset: id },
      title: `Delete the preset ${name}`,
    })
  return parts.card(
    'Presets',
    presets.length > 0
      ? parts.table('Your presets', presets, {
          Name: ({ name }) => name,
          Options: ({ options }) => describeOptions(options),
          'Delete it': { cell: deleteButton, isHidden: true },
        })
      : html`<p>A preset keeps your colors, logo and caption under a name. Create the first one
          below, or from the QR section of a link.</p>`,
  )
}

function newPresetCard(
  { qrStore }: DashboardDeps,
  user: CurrentUser,
  query: Query,
  error?: string,
): Html {
  const choice = parseQrChoice(query)
  const warning = scanWarning(choice.options)
  return parts.card('New preset', [
    warning && parts.notice('note', html`<p>${warning}</p>`),
    parts.form(user, `${QR_SETTINGS_PATH}/presets`, [
      parts.field({
        name: 'name',
        label: 'Name',
        value: query.name,
        required: true,
        autocomplete: 'off',
        hint: 'A preset with the same name is replaced.',
        error,
        extra: { maxlength: NAME_LENGTH_MAX },
      }),
      qrFields(choice, qrStore.hasLogo(user.account.id)),
      parts.button('Save preset'),
    ]),
  ])
}
