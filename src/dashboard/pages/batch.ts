import { parseWith } from '../../http/body.ts'
import { isoTime } from '../../lib/clock.ts'
import { CSV_TYPE } from '../../lib/csv.ts'
import { fullCsv } from '../../links/csv.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import { exportLinks } from '../../links/export.ts'
import { changeProperties, type DetailedLink, withDetails } from '../../links/properties.ts'
import type { PropertiesChange } from '../../links/property-table.ts'
import { Tag } from '../../links/schema.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { parsePrintOptions } from '../../qr/options.ts'
import { type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import { requireRole } from '../auth/roles.ts'
import type { DashboardDeps } from '../deps.ts'
import { formAction, signedInPages } from '../page-routes.ts'
import { fileResponse, isFormError, isTemporary, refuse } from '../responses.ts'
import { count, plural } from '../ui/components.ts'
import { EMPTY_FORM, type Form } from '../ui/form.ts'
import { PAGE_SIZE } from '../ui/layout.ts'
import { filterOf, listPathWith, parseTableQuery } from '../ui/link-table.ts'
import { movePath } from './hand-over.ts'
import { linksPage } from './links.ts'
import { zipOf } from './print-zip.ts'

/** Actions of the list on the selected links, and the export of all. */
export const batchPages = signedInPages({
  /** What the list shows, generated while it is sent. */
  'GET /app/links/export.csv': async ({ deps, user, query }) => {
    const filter = filterOf({ deps, user }, parseTableQuery(query))
    const chunks = exportLinks(deps, user.account.id, filter)
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
  if (form.text('all') === '1') return runOnMatches(context)
  const codes = selectedCodes(form)
  const action = form.text('action')
  if (action === 'analytics') return `/app/analytics?links=${codes.join(',')}`
  if (action === 'print') return `/app/print?codes=${codes.join(',')}`
  if (action === 'move') return movePath({ codes })
  if (action === 'export' || action === 'qr') {
    const links = codes.map((code) => requireOwnedLink(deps, account, code))
    const chosen = withDetails(deps, links)
    return action === 'qr'
      ? zipOf(context, chosen, parsePrintOptions({}))
      : exportSome(deps, chosen)
  }
  requireRole(user, 'editor')
  spendWrite(context)
  const query = parseTableQuery(listQuery(context))
  switch (action) {
    case 'delete':
      await scheduleDeletion(deps, account, codes)
      return listPathWith(query, doneWith('deleted', codes, { undo: codes.join(',') }))
    default: {
      await changeProperties(deps, account, codes, changeOf(form))
      return listPathWith(query, doneWith(DONE_WORDS[action] ?? '', codes))
    }
  }
}

const DONE_WORDS: Readonly<Record<string, string>> = {
  pause: 'paused',
  resume: 'resumed',
  tag: 'tagged',
  untag: 'untagged',
}

/** What an action changes of each link. */
function changeOf(form: Form): PropertiesChange {
  const action = form.text('action')
  if (action === 'pause' || action === 'resume') return { paused: action === 'pause' }
  if (action === 'tag') return { addTags: [parseWith(Tag, form.text('tag'))] }
  if (action === 'untag') return { removeTags: [parseWith(Tag, form.text('tag'))] }
  throw refuse('Choose what to do with the selected links.')
}

/** Links of a report on a selection: their codes are in its address. */
const REPORT_MAX = 200

/**
 * The same action on all links that the list has on all its pages. They are read and changed in
 * pieces, at most as many as a bulk of the plan creates.
 */
async function runOnMatches(context: PageContext): Promise<Response | string> {
  const { deps, user, form } = context
  const { account } = user
  const query = parseTableQuery(listQuery(context))
  const filter = filterOf(context, query)
  const action = form.text('action')
  if (action === 'export' || action === 'print') {
    const params = new URLSearchParams(listQuery(context) as Record<string, string>)
    return `/app/${action === 'print' ? 'print' : 'links/export.csv'}?${params}`
  }
  if (action === 'move') return movePath(listQuery(context))
  const isReport = action === 'analytics'
  if (isReport && query.tag !== '' && query.search === '' && query.state === '') {
    return `/app/analytics?${new URLSearchParams({ tag: query.tag })}`
  }
  if (action === 'delete' || action === 'qr') {
    const verb = action === 'delete' ? 'Delete' : 'Download'
    throw refuse(`${verb} at most ${PAGE_SIZE} links at once: select them on the page.`)
  }
  if (!isReport) requireRole(user, 'editor')
  const change = isReport ? undefined : changeOf(form)
  const linksMax = isReport ? REPORT_MAX : deps.plans[account.plan].bulkMax
  const { total } = await deps.pages.findPage(
    { accountId: account.id, ...filter, limit: 1, offset: 0 },
    context.request.signal,
  )
  if (total > linksMax) {
    throw refuse(`These are ${count(total)} links: at most ${count(linksMax)} at once.`)
  }
  if (change) spendWrite(context)
  const codes: string[] = []
  for await (const links of exportLinks(deps, account.id, filter)) {
    for (const some of chunksOf(links.map(({ code }) => code))) {
      if (change) await changeMore(context, some, { change, done: codes.length })
      codes.push(...some)
    }
  }
  if (!change) return `/app/analytics?links=${codes.join(',')}`
  return listPathWith(query, doneWith(DONE_WORDS[action] ?? '', codes))
}

const chunksOf = (codes: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(codes.length / PAGE_SIZE) }, (_, n) =>
    codes.slice(n * PAGE_SIZE, (n + 1) * PAGE_SIZE),
  )

/** `done`: the number of links that were changed before, which a refusal names. */
async function changeMore(
  { deps, user }: PageContext,
  codes: readonly string[],
  { change, done }: { change: PropertiesChange; done: number },
): Promise<void> {
  try {
    await changeProperties(deps, user.account, codes, change)
  } catch (error) {
    if (done === 0 || !isFormError(error)) throw error
    throw refuse(`${plural(done, 'link')} changed, the others not: ${error.message}`)
  }
}

/** A file with a few links. */
const exportSome = (deps: DashboardDeps, links: readonly DetailedLink[]): Response =>
  csvResponse(deps, fullCsv.head + fullCsv.lines(deps.addresses, links))

function csvResponse(
  { clock }: DashboardDeps,
  body: ReadableStream<Uint8Array> | string,
): Response {
  const day = isoTime(clock()).slice(0, 10)
  return fileResponse(body, { name: `hopcode-links-${day}.csv`, type: CSV_TYPE })
}

async function* csvOf(
  deps: DashboardDeps,
  chunks: AsyncGenerator<DetailedLink[], void, undefined>,
): AsyncGenerator<string, void, undefined> {
  let { head } = fullCsv
  for await (const links of chunks) {
    yield head + fullCsv.lines(deps.addresses, links)
    head = ''
  }
}
