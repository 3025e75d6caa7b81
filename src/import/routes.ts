import { Elysia } from 'elysia'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { BATCH_BODY_MAX, parseWith, type RequestBodies } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { longJson, type UnsentResponses } from '../http/unsent.ts'
import { CSV_TYPE } from '../lib/csv.ts'
import { utf8Text } from '../lib/utf8.ts'
import { strictBody } from '../links/schema.ts'
import type { ListKit } from '../lists/export.ts'
import { EXPORT_FORMATS, exportFile } from './export.ts'
import { ImportLine } from './line.ts'
import { type ImportKit, importLines } from './lines.ts'
import { OUTCOMES } from './outcomes.ts'

type Deps = ImportKit & ListKit & GuardDeps & { bodies: RequestBodies; unsent: UnsentResponses }

export const importRoutes = (deps: Deps) =>
  new Elysia({ name: 'import' }).use(postRoute(deps)).use(exportRoute(deps))

const LINES_TYPE = 'application/x-ndjson'
/** Its other names. */
const LINES_TYPES = /^(application|text)\/(x-)?(ndjson|jsonl|json-lines)[\t ]*(;|$)/i

const ImportQuery = strictBody(
  {
    dry_run: z
      .enum(['true', 'false'], 'Invalid dry_run: must be true or false')
      .default('false')
      .meta({
        description:
          'True: nothing is written, and the results are those that an import of these lines ' +
          'would have now. Earlier dry runs make no difference.',
      }),
  },
  'Invalid query',
)

export const ImportView = z
  .object({
    /** Lines. */
    count: z.int().min(0),
    links: z.int().min(0).meta({ description: 'Links that were created.' }),
    bytes: z
      .int()
      .min(0)
      .meta({ description: 'What they add to the bytes that the account stores.' }),
    results: z.array(
      z
        .object({
          outcome: z.enum(OUTCOMES),
          code: z.string().nullable(),
          message: z.string(),
        })
        .meta({ id: 'ImportLineResult' }),
    ),
  })
  .meta({ id: 'ImportResult' })
export type ImportView = z.infer<typeof ImportView>

const postRoute = (deps: Deps) =>
  new Elysia({ name: 'import.post', prefix: '/api' }).use(requireKey(deps, 'change')).post(
    '/import',
    async ({ request, account, query }) => {
      const { dry_run } = parseWith(ImportQuery, query)
      const { bulkMax } = deps.plans[account.plan]
      const lines = await readLines(deps, request, { holder: account.id, linesMax: bulkMax })
      const dryRun = dry_run === 'true'
      const { results, stored } = await importLines(deps, account, lines, { dryRun })
      const { links, urlBytes: bytes } = stored
      return longJson({ count: results.length, links, bytes, results } satisfies ImportView)
    },
    {
      // The type is none that Elysia knows: the handler reads the body.
      parse: 'none',
      ...described({
        id: 'importLinks',
        summary: 'Create links with their codes, dates and hits',
        description: [
          'The body has one JSON object (`ImportedLink`) a line, at most as many as a bulk request',
          'has URLs, and 8 MiB. Each line has one result, in their order; empty lines have none.',
          'What exists is not changed, so that the same lines can be sent again. `hopcode export`',
          'writes this format. No passcodes are issued.',
        ].join(' '),
        query: ImportQuery,
        lines: {
          contentType: LINES_TYPE,
          line: ImportLine,
          example:
            '{"code":"SPRING26","url":"https://example.com/a"}\n{"url":"https://example.com/b"}\n',
        },
        answers: { 200: { description: 'One result a line, in order.', view: ImportView } },
      }),
    },
  )

async function readLines(
  { bodies }: Deps,
  request: Request,
  { holder, linesMax }: { holder: number; linesMax: number },
): Promise<string[]> {
  if (!LINES_TYPES.test(request.headers.get('content-type') ?? '')) {
    throw new AppError('unsupported_media_type', LINES_TYPE)
  }
  using body = await bodies.read(request, { holder, bytesMax: BATCH_BODY_MAX })
  const text = utf8Text(body.bytes)
  if (text === undefined) throw new AppError('invalid_utf8')
  // Empty lines cost memory too. The last text is the one after the last line break.
  const all = text.split('\n', 2 * linesMax + 2)
  const lines = all.filter((line) => line.trim() !== '')
  const isComplete = all.length <= 2 * linesMax + 1
  if (isComplete && lines.length >= 1 && lines.length <= linesMax) return lines
  throw new AppError('invalid_value', `The body must have between 1 and ${linesMax} lines`)
}

const ExportQuery = z.object({
  format: z
    .enum(EXPORT_FORMATS, `Invalid format: must be ${EXPORT_FORMATS.join(' or ')}`)
    .default('jsonl')
    .meta({ description: 'csv: for spreadsheets, without rules and aliases.' }),
})

const exportRoute = (deps: Deps) =>
  new Elysia({ name: 'import.export', prefix: '/api' }).use(requireKey(deps, 'read')).get(
    '/export',
    async ({ account, query }) => {
      const { format } = parseWith(ExportQuery, query)
      const chunks = exportFile(deps, account.id, format)
      const type = format === 'csv' ? CSV_TYPE : LINES_TYPE
      const body = await deps.unsent.generate(account.id, chunks)
      return new Response(body, { headers: { 'content-type': type } })
    },
    described({
      id: 'exportLinks',
      summary: 'All links of the account as one file',
      description: [
        'JSON Lines: a first line about the file, then everything about one link a line, oldest',
        'first, in the format of `POST /api/import`. Passcodes are not in it.',
      ].join(' '),
      query: ExportQuery,
      answers: {
        200: { description: 'The file.', binary: [LINES_TYPE, 'text/csv'] },
      },
    }),
  )
