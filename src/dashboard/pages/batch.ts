import { parseWith } from '../../http/body.ts'
import { isoTime } from '../../lib/clock.ts'
import { BYTE_ORDER_MARK, CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import { exportLinks } from '../../links/export.ts'
import type { PublicUrls } from '../../links/link.ts'
import { changeProperties, type DetailedLink, withDetails } from '../../links/properties.ts'
import { propertiesView, SETTABLE_PROPERTIES } from '../../links/property-table.ts'
import { Tag } from '../../links/schema.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { parsePrintOptions } from '../../qr/options.ts'
import { type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { formAction, signedInPages } from '../page-routes.ts'
import { fileResponse, isTemporary, refuse } from '../responses.ts'
import { EMPTY_FORM, type Form } from '../ui/form.ts'
import { PAGE_SIZE } from '../ui/layout.ts'
import { filterOf, listPathWith, parseTableQuery } from '../ui/link-table.ts'
import { linksPage } from './links.ts'
import { zipOf } from './print-zip.ts'

/** Actions of the list on the selected links, and the export of all. */
export const batchPages = signedInPages({
  /** What the list shows, generated while it is sent. */
  'GET /app/links/export.csv': async ({ deps, user, query }) => {
    const chunks = exportLinks(deps, user.account.id, filterOf(parseTableQuery(query)))
    return csvResponse(deps, await deps.unsent.generate(user.account.id, csvOf(deps, chunks)))
  },
  // Codes have at least six characters: no link's page can have these paths.
  'POST /app/links/batch': formAction(
    (context) => linksPage({ ...context, form: EMPTY_FORM, query: listQuery(context) }),
    runAction,
  ),
  'POST /app/links/undo': formAction(
    ({ form, ...context }) => {
      const codes = form.all('code')
      // Undo stays possible: the links are deleted in a few seconds.
      const canRetry = context.refusal && isTemporary(context.refusal)
      const query = canRetry ? doneWith('deleted', codes, { undo: codes.join(',') }) : {}
      return linksPage({ ...context, form: EMPTY_FORM, query })
    },
    async (context) => {
      const codes = selectedCodes(context.form)
      spendWrite(context)
      await undoDeletion(context.deps, context.user.account, codes)
      return listPathWith(parseTableQuery({}), doneWith('restored', codes))
    },
  ),
})

/** The query of the list that a form was sent from. */
const listQuery = ({ form }: PageContext): Query =>
  Object.fromEntries(new URLSearchParams(form.text('at')))

/** For the list's query: the action, the number of links, and the codes that Undo restores. */
const doneWith = (done: string, codes: readonly string[], undo: { undo?: string } = {}) => ({
  done,
  n: String(codes.length),
  ...undo,
})

/** The codes that a form of the list sends: a page of them at most. */
function selectedCodes(form: Form): string[] {
  const codes = [...new Set(form.all('code'))]
  if (codes.length === 0) throw refuse('Select at least one link.')
  if (codes.length > PAGE_SIZE) throw refuse(`Select at most ${PAGE_SIZE} links.`)
  return codes
}

async function runAction(context: PageContext): Promise<Response | string> {
  const { deps, user, form } = context
  const { account } = user
  const codes = selectedCodes(form)
  const action = form.text('action')
  if (action === 'print') return `/app/print?codes=${codes.join(',')}`
  if (action === 'export' || action === 'qr') {
    const links = codes.map((code) => requireOwnedLink(deps, account, code))
    const chosen = withDetails(deps, links)
    return action === 'qr'
      ? zipOf(context, chosen, parsePrintOptions({}))
      : exportSome(deps, chosen)
  }
  spendWrite(context)
  const query = parseTableQuery(listQuery(context))
  switch (action) {
    case 'delete':
      await scheduleDeletion(deps, account, codes)
      return listPathWith(query, doneWith('deleted', codes, { undo: codes.join(',') }))
    case 'pause':
    case 'resume': {
      const paused = action === 'pause'
      await changeProperties(deps, account, codes, { paused })
      return listPathWith(query, doneWith(paused ? 'paused' : 'resumed', codes))
    }
    case 'tag':
    case 'untag': {
      const tags = [parseWith(Tag, form.text('tag'))]
      const change = action === 'tag' ? { addTags: tags } : { removeTags: tags }
      await changeProperties(deps, account, codes, change)
      return listPathWith(query, doneWith(action === 'tag' ? 'tagged' : 'untagged', codes))
    }
    default:
      throw refuse('Choose what to do with the selected links.')
  }
}

/** A file with a few links. */
const exportSome = (deps: DashboardDeps, links: readonly DetailedLink[]): Response =>
  csvResponse(deps, HEAD + linkLines(deps, links))

function csvResponse(
  { clock }: DashboardDeps,
  body: ReadableStream<Uint8Array> | string,
): Response {
  const day = isoTime(clock()).slice(0, 10)
  return fileResponse(body, { name: `hopcode-links-${day}.csv`, type: CSV_TYPE })
}

type CellOf = (link: DetailedLink, addresses: PublicUrls) => string | number | null

const COLUMNS: Readonly<Record<string, CellOf>> = {
  code: ({ code }) => code,
  short_url: (link, addresses) => addresses.display(link),
  url: ({ url }) => url,
  created_at: ({ createdAt }) => isoTime(createdAt),
  hits: ({ hitCount }) => hitCount,
}
const CELLS = Object.values(COLUMNS)
const PROPERTY_NAMES = SETTABLE_PROPERTIES.map(({ name }) => name)
const HEAD = BYTE_ORDER_MARK + csvLine([...Object.keys(COLUMNS), ...PROPERTY_NAMES])

const linkLines = ({ addresses }: DashboardDeps, links: readonly DetailedLink[]): string =>
  links
    .map((link) => {
      const view = propertiesView(link.properties)
      const properties = PROPERTY_NAMES.map((name) => {
        const value = view[name]
        if (Array.isArray(value)) return value.join(', ')
        return typeof value === 'boolean' ? String(value) : value
      })
      return csvLine([...CELLS.map((cellOf) => cellOf(link, addresses)), ...properties])
    })
    .join('')

async function* csvOf(
  deps: DashboardDeps,
  chunks: AsyncGenerator<DetailedLink[], void, undefined>,
): AsyncGenerator<string, void, undefined> {
  let head = HEAD
  for await (const links of chunks) {
    yield head + linkLines(deps, links)
    head = ''
  }
}
