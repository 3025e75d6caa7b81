import { appendFileSync, openSync } from 'node:fs'
import { basename } from 'node:path'
import { type Command, Option } from '@commander-js/extra-typings'
import type { AccountRow } from '../accounts/store.ts'
import { Hopcode } from '../client/client.ts'
import {
  EXPORT_FORMATS,
  type ExportFileDeps,
  type ExportFormat,
  exportPage,
} from '../import/export.ts'
import { FORMAT_NAMES, type FormatName, formatOf } from '../import/formats.ts'
import { type ImportDeps, importLines } from '../import/lines.ts'
import { isCreated, isFine, OUTCOMES } from '../import/outcomes.ts'
import { type Found, type ImportOptions, SENT_ROWS_MAX } from '../import/plan.ts'
import { readInProcess } from '../import/reader.ts'
import {
  countRows,
  type ImportedRow,
  PROBLEMS_MAX,
  runImport,
  type Send,
  type Summary,
  writeReport,
} from '../import/run.ts'
import { SourceError, type SourceFile } from '../import/source.ts'
import { visible } from '../lib/html.ts'
import { print, printError } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import type { Stored } from '../links/quota.ts'
import type { Administration } from './administration.ts'
import { CommandError, ProblemsFound } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { type Flag, parseText } from './options.ts'
import { Progress } from './progress.ts'
import { explained, target } from './remote.ts'
import { callService, findService } from './socket.ts'

const WHERE =
  'It needs a running service: the one that uses DATA_DIR on this machine, or with ' +
  'HOPCODE_API_KEY, that of HOPCODE_URL.'

/** Commands that move links from other services to this one, and from this one. */
export function addMovingCommands(program: Command): void {
  program
    .command('import')
    .summary('import links of another service, with their codes, dates and hits')
    .description(
      `Import links of another service, with their codes, dates and hits. ${WHERE} Running it ` +
        'again changes nothing. See docs/move.md.',
    )
    .argument('<FORMAT>', `auto, ${FORMAT_NAMES.join(', ')}`, parseFormat)
    .argument('<FILE...>', 'exports, dumps or databases, all of one import')
    .option('--account <E>', 'the account of the links; without it, the owner', parseText)
    .option('--dry-run', 'print the results, and change nothing')
    .option('--domain <D...>', 'only the links of these domains; the first one wins a path')
    .option('--report <FILE>', 'write a CSV file with the result of each row', parseText)
    .option('--without-hits', 'hits start at 0')
    .addOption(
      new Option('--passwords <HOW>', 'links with a password: paused, left out, or open to all')
        .choices(['pause', 'skip', 'open'] as const)
        .default('pause' as const),
    )
    .option('--skip-disabled', 'leave out disabled links, which are paused otherwise')
    .addOption(
      new Option('--date-format <ORDER>', 'the order of dates such as 02.01.2024').choices([
        'dmy',
        'mdy',
      ] as const),
    )
    .option('--force', 'import although over half of the rows are refused')
    .action((format, files, options) => importFiles(format, files, options))
  program
    .command('export')
    .summary('write all links of an account to a file')
    .description(`Write all links of an account to a file. ${WHERE}`)
    .argument('<FILE>', 'the file to write; - is standard output')
    .option('--account <E>', 'the account; without it, the owner', parseText)
    .addOption(
      new Option('--format <F>', 'jsonl has everything, csv is for spreadsheets')
        .choices(EXPORT_FORMATS)
        .default('jsonl' as const),
    )
    .action((file, options) => exportTo(file, options))
}

function parseFormat(text: string): FormatName | 'auto' {
  const found = ['auto' as const, ...FORMAT_NAMES].find((name) => name === text)
  if (found) return found
  throw new CommandError(`unknown format ${text}. There are: auto, ${FORMAT_NAMES.join(', ')}`)
}

/** What the service needs for these commands. */
export type MovingDeps = Pick<Administration, 'accounts' | 'data'> & ImportDeps & ExportFileDeps

/** What the commands run in the service. */
export const movingCommands = { importBatch, exportBatch }

interface ImportBatch {
  account?: string
  lines: readonly string[]
  dryRun?: boolean
  /** What earlier batches of a dry run would have stored. */
  before?: Stored
}

async function importBatch(deps: MovingDeps, { account, lines, ...options }: ImportBatch) {
  return importLines(deps, accountOf(deps, account), lines, { ...options, isOperator: true })
}

async function exportBatch(
  deps: MovingDeps,
  { account, format, above }: { account?: string; format: ExportFormat; above: number },
) {
  return exportPage(deps, accountOf(deps, account).id, { format, above })
}

function accountOf({ accounts }: Pick<MovingDeps, 'accounts'>, email?: string): AccountRow {
  if (email !== undefined) {
    const account = accounts.findByEmail(email)
    if (account) return account
    throw new CommandError(`no account has the e-mail address ${email}`)
  }
  const [owner, ...others] = accounts.listOwners()
  if (owner && others.length === 0) return owner
  throw new CommandError(`there ${owner ? 'are several owners' : 'is no owner'}: use --account`)
}

interface CommandImport extends Omit<ImportOptions, 'format' | 'domains'> {
  account?: string | undefined
  dryRun?: Flag
  domain?: string[] | undefined
  report?: string | undefined
  force?: Flag
}

async function importFiles(
  format: FormatName | 'auto',
  names: readonly string[],
  { account, dryRun, domain, report, force, ...rest }: CommandImport,
): Promise<void> {
  const options: ImportOptions = { ...rest, format, domains: domain, dryRun }
  const files = await Promise.all(names.map(openFile))
  using progress = new Rate()
  const { send, rowsMax } = await receiverOf(account, dryRun === true)
  let rows = 0
  // Opened once the files are read: a refusal leaves an existing report as it is.
  let file: number | undefined
  const steps = runImport(readInProcess(files, { ...options, as: 'lines', batchMax: rowsMax }), {
    send,
    onRead: (read) => progress.note('Reading', read),
    onFound: (found) => {
      if (!force) requireMostlyGood(found)
      rows = found.rows
      file = report === undefined ? undefined : openOutput(report)
    },
  })
  const state = { done: 0, problems: [] as ImportedRow[] }
  const write = (text: string) => {
    if (file !== undefined) appendFileSync(file, text)
    if (state.done > 0) progress.note(dryRun ? 'Checking' : 'Importing', state.done, rows)
  }
  const summary = await writeReport(steps, state, write).catch((error) => {
    throw error instanceof SourceError ? new CommandError(error.message) : error
  })
  progress[Symbol.dispose]()
  print(describe(summary, state.problems, { isDryRun: dryRun === true, report }))
  const fine = countRows(summary, isFine)
  if (fine < summary.rows) throw new ProblemsFound(fine === 0 ? 2 : 1)
}

/** Throws CommandError. */
function requireMostlyGood({ rows, bad }: Found): void {
  if (bad <= rows / 2) return
  throw new CommandError(
    `${bad} of ${rows} rows have no destination or a malformed one. ` +
      'Is it the right file and format? With --force the others are imported.',
  )
}

async function openFile(path: string): Promise<SourceFile> {
  const blob = Bun.file(path)
  if (!(await blob.exists())) {
    throw new CommandError(`${path} does not exist, or is not a regular file: it is read twice`)
  }
  return { name: basename(path), blob, path }
}

/** Replaces an existing file. Throws CommandError. */
function openOutput(path: string): number {
  try {
    return openSync(path, 'w', 0o600)
  } catch (error) {
    throw new CommandError(`${path} cannot be written: ${messageOf(error)}`)
  }
}

function describe(
  { format, rows, counts, hits, lost }: Summary,
  problems: readonly ImportedRow[],
  { isDryRun, report }: { isDryRun: boolean; report: string | undefined },
): string {
  const { label, note } = formatOf(format)
  const number = (n: number) => n.toLocaleString('en')
  const outcomes = OUTCOMES.flatMap((outcome) => {
    const count = counts[outcome]
    return count ? `  ${number(count).padStart(11)}  ${outcome}` : []
  })
  const created = OUTCOMES.filter(isCreated).some((outcome) => counts[outcome])
  const losses = Object.entries(lost).map(([name, n]) => `${number(n)} × ${name}`)
  return [
    `${label}: ${number(rows)} ${rows === 1 ? 'row' : 'rows'}${isDryRun ? ', as a dry run' : ''}`,
    ...outcomes,
    created && hits > 0 && `Hits without dates: ${number(hits)}. ${note ?? ''}`.trim(),
    losses.length > 0 && `Hopcode does not have: ${losses.join(', ')}.`,
    ...problems.map(({ line, path, outcome, message }) => {
      return visible(`row ${line}  ${outcome}  /${path}  ${message}`)
    }),
    report === undefined && problems.length === PROBLEMS_MAX && '… --report FILE has all of them',
  ]
    .filter((text) => text !== false)
    .join('\n')
}

/** Calls of the service on this machine, or of that with the API key. */
async function serviceOf(account: string | undefined) {
  const { dataDir, remote } = readConfigOfFolder()
  if (account === undefined && remote.apiKey) return undefined
  const service = await findService(dataDir)
  if (!service) {
    throw new CommandError(`no service uses ${dataDir}: start it first, or set HOPCODE_API_KEY`)
  }
  return <Result>(name: keyof typeof movingCommands, args: object): Promise<Result> =>
    callService(service, name, { ...args, account }) as Promise<Result>
}

interface Receiver {
  send: Send<string>
  rowsMax?: number | undefined
}

async function receiverOf(account: string | undefined, dryRun: boolean): Promise<Receiver> {
  const call = await serviceOf(account)
  if (call) return { send: (lines, before) => call('importBatch', { lines, dryRun, before }) }
  const { url, apiKey = '' } = await target()
  return remoteReceiver(new Hopcode({ url, apiKey }), url, dryRun)
}

/** A service with its API. The plan of the account decides how many lines a request has. */
export async function remoteReceiver(
  hopcode: Hopcode,
  url: string,
  dryRun: boolean,
): Promise<Receiver> {
  const empty = explained(url, hopcode.importLines(['', '']))
  const refusal = await empty.catch((error: unknown) => error)
  const most = /between 1 and (\d+) lines/.exec((refusal as Error).message)?.[1]
  if (!most) throw refusal
  const send: Send<string> = async (lines) => {
    const { results, links, bytes } = await explained(url, hopcode.importLines(lines, { dryRun }))
    return { results, stored: { links, urlBytes: bytes } }
  }
  return { send, rowsMax: Math.min(Number(most), SENT_ROWS_MAX) }
}

async function exportTo(
  file: string,
  { account, format }: { account?: string | undefined; format: ExportFormat },
): Promise<void> {
  const chunks = exportChunks(await serviceOf(account), format)
  // The first chunk is read before the file is opened: a refusal leaves an existing file as it is.
  let chunk = await chunks.next()
  const out = file === '-' ? Bun.stdout.writer() : Bun.file(openOutput(file)).writer()
  for (; !chunk.done; chunk = await chunks.next()) {
    out.write(chunk.value)
    await out.flush()
  }
  await out.end()
  printError(`Exported to ${file === '-' ? 'standard output' : file}`)
}

async function* exportChunks(
  call: Awaited<ReturnType<typeof serviceOf>>,
  format: ExportFormat,
): AsyncGenerator<string | Uint8Array<ArrayBuffer>, void> {
  if (!call) {
    const { url, apiKey = '' } = await target()
    const hopcode = new Hopcode({ url, apiKey })
    yield* await explained(url, hopcode.exportLinks({ format }))
    return
  }
  for (let above: number | undefined = 0; above !== undefined; ) {
    const page: { text: string; next?: number } = await call('exportBatch', { format, above })
    yield page.text
    above = page.next
  }
}

const NOTE_MS = 200

/** Rows, rate and remaining time, on one line of a terminal. */
class Rate implements Disposable {
  readonly #progress = new Progress()
  #startedAt = performance.now()
  #printedAt = this.#startedAt
  #text = ''

  note(text: string, done: number, total?: number): void {
    const now = performance.now()
    if (text !== this.#text) this.#startedAt = now
    this.#text = text
    if (now - this.#printedAt < NOTE_MS) return
    this.#printedAt = now
    const rate = done / ((now - this.#startedAt) / 1000)
    const left = total === undefined ? '' : `, ${Math.ceil((total - done) / rate)} s left`
    const of = total === undefined ? '' : ` of ${total.toLocaleString('en')}`
    this.#progress.step(
      `${text} ${done.toLocaleString('en')}${of} rows, ${Math.round(rate)}/s${left}`,
    )
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]()
  }
}
