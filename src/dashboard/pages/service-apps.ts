import { NO_DOMAIN } from '../../addresses/address.ts'
import { APP_FILES, APP_KINDS, parseAppFile } from '../../addresses/app-files.ts'
import { type AppFiles, setDomain } from '../../addresses/operations.ts'
import { readableHost } from '../../addresses/shown-host.ts'
import { AppError } from '../../errors.ts'
import { html } from '../../lib/html.ts'
import { ownerOf, type PageContext } from '../auth/guard.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { atField } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

const PATH = '/app/service/domains'
export const appsPath = (host: string) => `${PATH}/${host}/apps` as const

/** The files by which phones open apps for a domain, also for the primary one. */
export const serviceAppsPages = signedInPages({
  'GET /app/service/domains/:host/apps': owner(appsPage),
  'POST /app/service/domains/:host/apps': owner(saveFiles, { page: appsPage, bulk: true }),
})

const LABELS = {
  apple: { label: 'iPhone and iPad', hint: 'Universal links: an object with applinks.' },
  android: { label: 'Android', hint: 'App links: a list of statements with relation and target.' },
}

async function saveFiles(context: PageContext): Promise<string> {
  const { deps, user, form, params } = context
  const { host = '' } = params
  const files: AppFiles = {}
  for (const kind of APP_KINDS) {
    const text = (await form.file(`${kind}_file`)?.text()) ?? form.text(kind)
    files[kind] = text === '' ? null : await atField(kind, () => parseAppFile(kind, text))
  }
  await setDomain(deps, ownerOf(context), { host, ...files })
  deps.log.info('domain.apps_changed', { account_id: user.account.id, host })
  return `${appsPath(host)}?done=saved`
}

function appsPage(context: PageContext): Response {
  const { deps, user, params } = context
  const { host = '' } = params
  const id = deps.addresses.idOf(host)
  if (id === NO_DOMAIN) throw new AppError('page_not_found')
  const fields = APP_KINDS.map((kind) => {
    const stored = deps.data.appFiles.find(id, kind)
    const isServed = stored === undefined ? 'Not served' : 'Served'
    return [
      parts.field({
        ...typed(context, kind, stored),
        ...LABELS[kind],
        type: 'textarea',
        extra: { rows: 12, spellcheck: 'false', class: 'code' },
      }),
      parts.field({ name: `${kind}_file`, label: 'Or a file', type: 'file' }),
      html`<p class="hint">${isServed} at
        <code>https://${host}/.well-known/${APP_FILES[kind].name}</code></p>`,
    ]
  })
  return page(context, {
    title: `Apps of ${readableHost(host)}`,
    at: PATH,
    back: { href: PATH, label: 'Domains' },
    messages: { saved: 'Saved. Phones may have the earlier files for some days.' },
    main: parts.card('Apps that open its short links', [
      html`<p>Where your app is installed, a phone opens it in place of the browser when a person
        taps an address of <strong>${readableHost(host)}</strong>, if these files name the app.</p>
        <p><strong>What cannot work:</strong> a phone opens an app only for the host that was
        tapped, never for the destination of a redirect.</p>`,
      parts.form(
        user,
        appsPath(host),
        [
          ...fields,
          html`<p class="hint">JSON of at most 128 KiB each. Empty a field to remove its file.</p>`,
          parts.button('Save'),
        ],
        { enctype: 'multipart/form-data' },
      ),
    ]),
  })
}
