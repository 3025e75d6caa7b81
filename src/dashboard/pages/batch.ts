import { DASHBOARD_REF, parsePrintOptions } from '../../draw/options.ts'
import { parseWith } from '../../http/body.ts'
import { isoTime } from '../../lib/clock.ts'
import { CSV_TYPE } from '../../lib/csv.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import { changeProperties, type DetailedLink, withDetails } from '../../links/properties.ts'
import type { PropertiesChange } from '../../links/property-table.ts'
import { Tag } from '../../links/schema.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { fullCsv } from '../../lists/csv.ts'
import { exportLinks } from '../../lists/export.ts'
import { requireRole } from '../auth/access.ts'
import { type PageContext, type Query, spendWrite } from '../auth/guard.ts'
import { ANALYTICS_PATH, REPORT_MAX } from '../cards/hits.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages, viewer } from '../page-routes.ts'
import { zipOf } from '../print-zip.ts'
import { fileResponse, isFormError, isTemporary, refuse } from '../responses.ts'
import { count, plural } from '../ui/components.ts'
import { EMPTY_FORM, type Form } from '../ui/form.ts'
import { PAGE_SIZE } from '../ui/layout.ts'
import {
  BATCH_ROLES,
  type BatchAction,
  filterOf,
  isBatchAction,
  listPathWith,
  movePath,
  parseTableQuery,
} from '../ui/link-table.ts'
import { linksPage } from './links.ts'

/** Actions of the list on the selected links, and the export of all. */
export const batchPages = signedInPages({
  /** What the list shows, generated while it is sent. */
  'GET /app/links/export.csv': viewer(async ({ deps, user, query }) => {
    const filter = filterOf({ deps, user }, parseTableQuery(query))
    const chunks = exportLinks(deps, user.account.id, filter)
    return csvResponse(deps, await deps.unsent.generate(user.account.id, csvOf(deps, chunks)))
  }),
  // Codes have at least six characters: no link's page can have these paths.
  'POST /app/links/batch': {
    // Each action has a role of its own: `BATCH_ROLES`.
    role: 'viewer',
    page: (context) => linksPage({ ...context, form: EMPTY_FORM, query: listQuery(context) }),
    run: runAction,
  },
  'POST /app/links/undo': {
    role: 'editor',
    page: ({ form, ...context }) => {
      const codes = form.all('code')
      // Undo stays possible: the links are deleted in a few seconds.
      const canRetry = context.refusal && isTemporary(context.refusal)
      const query = canRetry ? doneWith('deleted', codes, { undo: codes.join(',') }) : {}
      return linksPage({ ...context, form: EMPTY_FORM, query })
    },
    run: async (context) => {
      const codes = selectedCodes(context.form)
      spendWrite(context)
      await undoDeletion(context.deps, context.user.account, codes)
      return listPathWith(parseTableQuery({}), doneWith('restored', codes))
    },
  },
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

type Answer = Response | string

/** An action of the list. */
interface Action {
  /** On links that were selected on the page. */
  onSelected: (context: PageContext, codes: readonly string[]) => Answer | Promise<Answer>
  /** On all links that the list has on all its pages. */
  onAll: (context: PageContext) => Answer | Promise<Answer>
}

/** By the value of the field `action`. */
const ACTIONS: Readonly<Record<BatchAction, Action>> = {
  analytics: { onSelected: (_, codes) => reportPath(codes), onAll: reportOnAll },
  print: {
    onSelected: (_, codes) => `/app/print?codes=${codes.join(',')}`,
    onAll: (context) => `/app/print?${listParams(context)}`,
  },
  export: {
    onSelected: (context, codes) => exportSome(context.deps, chosenLinks(context, codes)),
    onAll: (context) => `/app/links/export.csv?${listParams(context)}`,
  },
  qr: {
    onSelected: (context, codes) =>
      zipOf(context, chosenLinks(context, codes), parsePrintOptions({ ref: DASHBOARD_REF })),
    onAll: () => refuseAll('Download'),
  },
  move: {
    onSelected: (_, codes) => movePath({ codes }),
    onAll: (context) => movePath(listQuery(context)),
  },
  delete: {
    onSelected: (context, codes) =>
      changeSelected(context, async () => {
        await scheduleDeletion(context.deps, context.user.account, codes)
        return doneWith('deleted', codes, { undo: codes.join(',') })
      }),
    onAll: () => refuseAll('Delete'),
  },
  pause: changeAction('paused', () => ({ paused: true })),
  resume: changeAction('resumed', () => ({ paused: false })),
  tag: changeAction('tagged', (form) => ({ addTags: [parseWith(Tag, form.text('tag'))] })),
  untag: changeAction('untagged', (form) => ({ removeTags: [parseWith(Tag, form.text('tag'))] })),
}

const UNKNOWN_ACTION = changeAction('', () => {
  throw refuse('Choose what to do with the selected links.')
})

async function runAction(context: PageContext): Promise<Answer> {
  const { user, form } = context
  const name = form.text('action')
  const codes = form.text('all') === '1' ? undefined : selectedCodes(form)
  const known = isBatchAction(name) ? name : undefined
  requireRole(user, known ? BATCH_ROLES[known] : 'editor')
  const action = known ? ACTIONS[known] : UNKNOWN_ACTION
  return codes ? action.onSelected(context, codes) : action.onAll(context)
}

/** An action that changes properties of each link. */
function changeAction(done: string, changeOf: (form: Form) => PropertiesChange): Action {
  return {
    onSelected: (context, codes) =>
      changeSelected(context, async () => {
        await changeProperties(context.deps, context.user.account, codes, changeOf(context.form))
        return doneWith(done, codes)
      }),
    onAll: (context) => changeAll(context, done, changeOf),
  }
}

/** `change` returns what the query of the list names then. */
async function changeSelected(
  context: PageContext,
  change: () => Promise<ReturnType<typeof doneWith>>,
): Promise<string> {
  spendWrite(context)
  const query = parseTableQuery(listQuery(context))
  return listPathWith(query, await change())
}

const chosenLinks = ({ deps, user }: PageContext, codes: readonly string[]): DetailedLink[] =>
  withDetails(
    deps,
    codes.map((code) => requireOwnedLink(deps, user.account, code)),
  )

const listParams = (context: PageContext): URLSearchParams =>
  new URLSearchParams(listQuery(context) as Record<string, string>)

const reportPath = (codes: readonly string[]) => `${ANALYTICS_PATH}?links=${codes.join(',')}`

async function reportOnAll(context: PageContext): Promise<string> {
  const query = parseTableQuery(listQuery(context))
  if (query.tag !== '' && query.search === '' && query.state === '') {
    return `${ANALYTICS_PATH}?${new URLSearchParams({ tag: query.tag })}`
  }
  const filter = filterOf(context, query)
  await requireAtMost(context, filter, REPORT_MAX)
  const codes: string[] = []
  for await (const some of codesOf(context, filter)) codes.push(...some)
  return reportPath(codes)
}

/** Links are read and changed in pieces, at most as many as a bulk of the plan creates. */
async function changeAll(
  context: PageContext,
  done: string,
  changeOf: (form: Form) => PropertiesChange,
): Promise<string> {
  const { deps, user, form } = context
  const query = parseTableQuery(listQuery(context))
  const filter = filterOf(context, query)
  const change = changeOf(form)
  await requireAtMost(context, filter, deps.plans[user.account.plan].bulkMax)
  spendWrite(context)
  const codes: string[] = []
  for await (const some of codesOf(context, filter)) {
    await changeMore(context, some, { change, done: codes.length })
    codes.push(...some)
  }
  return listPathWith(query, doneWith(done, codes))
}

function refuseAll(verb: string): never {
  throw refuse(`${verb} at most ${PAGE_SIZE} links at once: select them on the page.`)
}

type Filter = ReturnType<typeof filterOf>

async function requireAtMost(
  { deps, user, request }: PageContext,
  filter: Filter,
  linksMax: number,
): Promise<void> {
  const { total } = await deps.pages.findPage(
    { accountId: user.account.id, ...filter, limit: 1, offset: 0 },
    request.signal,
  )
  if (total > linksMax) {
    throw refuse(`These are ${count(total)} links: at most ${count(linksMax)} at once.`)
  }
}

/** The codes of all links of a list, in pieces of a page at most. */
async function* codesOf({ deps, user }: PageContext, filter: Filter): AsyncGenerator<string[]> {
  for await (const links of exportLinks(deps, user.account.id, filter)) {
    yield* chunksOf(links.map(({ code }) => code))
  }
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
