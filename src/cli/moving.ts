import { appendFileSync, existsSync, openSync } from 'node:fs'
import { basename } from 'node:path'
import { Argument, type Command, Option } from '@commander-js/extra-typings'
import type { Account } from '../accounts/store.ts'
import { Hopcode } from '../client/client.ts'
import { EXPORT_FORMATS, type ExportFormat, exportPage } from '../import/export.ts'
import { FORMAT_NAMES, type FormatName, formatOf } from '../import/formats.ts'
import { HEADER_FIELD } from '../import/line.ts'
import { hostsFor, type ImportKit, importLines } from '../import/lines.ts'
import { isFine } from '../import/outcomes.ts'
import { type Found, type ImportOptions, SENT_ROWS_MAX } from '../import/plan.ts'
import { readInProcess } from '../import/reader.ts'
import type { DomainOptions } from '../import/row-domains.ts'
import { countRows, type ImportedRow, runImport, type Send, writeReport } from '../import/run.ts'
import { SourceError, type SourceFile } from '../import/source.ts'
import { print, printNotice } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import type { Stored } from '../links/quota.ts'
import type { ListKit } from '../lists/export.ts'
import { accountOf, findAccount } from './accounts.ts'
import type { Administration } from './administration.ts'
import { CommandError, ProblemsFound } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { describeImport, importJson } from './import-result.ts'
import { type Flag, JSON_OBJECT, parseText } from './options.ts'
import { Rate } from './progress.ts'
import { explained, target } from './remote.ts'
import { callService, findService } from './socket.ts'

const WHERE =
  'It needs a running service: the one that uses DATA_DIR on this machine, or with ' +
  'HOPCODE_API_KEY, that of HOPCODE_URL.'

const FORMATS: string[] = ['auto', ...FORMAT_NAMES]

const FORMAT_AND_FILES = new Argument(
  '<[FORMAT] FILE...>',
  'exports, dumps or databases, all of one import. Without FORMAT, or with auto, the content of ' +
    'the first file decides',
)
// For help and completion. Other words are files, so they are not refused here.
FORMAT_AND_FILES.argChoices = FORMATS

/** Commands that move links from other services to this one, and from this one. */
export function addMovingCommands(program: Command): void {
  program
    .command('import')
    .summary('import links of another service, with their codes, dates and hits')
    .description(
      `Import links of another service, with their codes, dates and hits. ${WHERE} Running it ` +
        'again changes nothing that exists.',
    )
    .addArgument(FORMAT_AND_FILES)
    .option('--account <E>', 'the account of the links; without it, the owner', parseText)
    .option('--dry-run', 'print the results, and change nothing')
    .option('--domain <D...>', 'only the links of these domains; the first one wins a path')
    .option('--report <FILE>', 'write a CSV file with the result of each row', parseText)
    .option('--without-hits', 'hits start at 0')
    .addOption(
      new Option(
        '--passwords <HOW>',
        'links with a password: kept, paused, left out, or open to all',
      )
        .choices(['keep', 'pause', 'skip', 'open'] as const)
        .default('keep' as const),
    )
    .option('--skip-disabled', 'leave out disabled links, which are paused otherwise')
    .option('--append-paths', 'add paths behind an address to its destination, as Shlink can')
    .addOption(
      new Option('--date-format <ORDER>', 'the order of dates such as 02.01.2024').choices([
        'dmy',
        'mdy',
      ] as const),
    )
    .option('--force', 'import although over half of the rows are refused')
    .option(...JSON_OBJECT)
    .addHelpText('after', IMPORT_HELP)
    .action((words, options) => {
      const { format, files } = formatAndFiles(words)
      return importFiles(format, files, options)
    })
  program
    .command('export')
    .summary('write all links of an account to a file')
    .description(`Write all links of an account to a file. ${WHERE}`)
    .argument('<FILE>', 'the file to write; - is standard output')
    .option('--account <E>', 'the account; without it, the owner', parseText)
    .addOption(
      new Option(
        '--format <F>',
        'jsonl has everything, csv is for spreadsheets; without it, the ending of FILE decides, ' +
          'and jsonl is the default',
      ).choices(EXPORT_FORMATS),
    )
    .option(...JSON_OBJECT)
    .action((file, options) => exportTo(file, options))
}

const IMPORT_HELP = `
Begin with --dry-run, which changes nothing:
  hopcode import links.csv --account you@example.com --dry-run
  hopcode import links.csv --account you@example.com --report report.csv

A path of 6 to 20 letters and digits becomes the code, which works in any letter case. Every other
path becomes an alias in exact case, and so do paths that differ in letter case only. Hits so far
have no dates, so charts do not show them. Import everything in one run.

Columns of a CSV file: a destination such as “Long URL”, and optionally “Short URL” or “Slug”,
“Title”, “Tags”, “Clicks” and “Created at”.

Exit code 0: every row was created, existed, or was left out on request. 1: some rows were refused.
2: all rows were refused.
`

const isFormat = (word: string): word is FormatName | 'auto' => FORMATS.includes(word)

/** The first word is a format if it is the name of one and a file follows. Throws CommandError. */
function formatAndFiles(words: readonly string[]): {
  format: FormatName | 'auto'
  files: readonly string[]
} {
  const [first = '', ...rest] = words
  if (existsSync(first) && (rest.length === 0 || !isFormat(first))) {
    return { format: 'auto', files: words }
  }
  if (isFormat(first)) {
    if (rest.length > 0) return { format: first, files: rest }
    throw new CommandError(`name a file after the format ${first}`)
  }
  const isMistypedFormat = rest.length > 0 && /^[\w-]+$/.test(first)
  if (!isMistypedFormat) return { format: 'auto', files: words }
  throw new CommandError(
    `unknown format ${first}, and no file has that name. Formats: ${FORMATS.join(', ')}`,
  )
}

/** What the service needs for these commands. */
export type MovingDeps = Pick<Administration, 'data'> & ImportKit & ListKit

/** What the commands run in the service. */
export const movingCommands = { importBatch, exportBatch, importHosts }

interface ImportBatch {
  account?: string
  lines: readonly string[]
  dryRun?: boolean
  /** What earlier batches of a dry run would have stored. */
  before?: Stored
}

async function importBatch(deps: MovingDeps, { account, lines, ...options }: ImportBatch) {
  return importLines(deps, chooseAccount(deps, account), lines, { ...options, isOperator: true })
}

async function exportBatch(
  deps: MovingDeps,
  { account, format, above }: { account?: string; format: ExportFormat; above: number },
) {
  return exportPage(deps, chooseAccount(deps, account).id, { format, above })
}

async function importHosts(deps: MovingDeps, { account }: { account?: string }) {
  return hostsFor(deps, chooseAccount(deps, account), { isOperator: true })
}

function chooseAccount({ data: { accounts } }: Pick<MovingDeps, 'data'>, text?: string): Account {
  if (text !== undefined) return { ...findAccount(accounts, text), by: 'operator' }
  const [owner, ...others] = accounts.listOwners()
  if (owner && others.length === 0) return { ...accountOf(accounts, owner), by: 'operator' }
  throw new CommandError(`there ${owner ? 'are several owners' : 'is no owner'}: use --account`)
}

interface CommandImport extends Omit<ImportOptions, 'format' | keyof DomainOptions> {
  account?: string | undefined
  dryRun?: Flag
  domain?: string[] | undefined
  report?: string | undefined
  force?: Flag
  json?: Flag
}

async function importFiles(
  format: FormatName | 'auto',
  names: readonly string[],
  { account, dryRun, domain, report, force, json, ...rest }: CommandImport,
): Promise<void> {
  const files = await Promise.all(names.map(openFile))
  using progress = new Rate()
  const { send, hosts, rowsMax } = await receiverOf(account, dryRun === true)
  const options: ImportOptions = { ...rest, format, domains: domain, hosts, dryRun }
  let rows = 0
  // Opened once the files are read: a refusal leaves an existing report as it is.
  let file: number | undefined
  const steps = runImport(readInProcess(files, { ...options, as: 'lines', batchMax: rowsMax }), {
    send,
    onRead: (read) => progress.note('Reading', { done: read }),
    onFound: (found) => {
      if (!force) requireMostlyGood(found)
      rows = found.rows
      file = report === undefined ? undefined : openOutput(report)
    },
  })
  const state = { done: 0, problems: [] as ImportedRow[] }
  const write = (text: string) => {
    if (file !== undefined) appendFileSync(file, text)
    if (state.done > 0) {
      progress.note(dryRun ? 'Checking' : 'Importing', { done: state.done, total: rows })
    }
  }
  const summary = await writeReport(steps, state, write).catch((error) => {
    throw error instanceof SourceError ? new CommandError(error.message) : error
  })
  progress[Symbol.dispose]()
  const about = { isDryRun: dryRun === true, report }
  print(json ? importJson(summary, about) : describeImport(summary, state.problems, about))
  const fine = countRows(summary, isFine)
  if (fine < summary.rows) throw new ProblemsFound(fine === 0 ? 2 : 1)
}

/** Throws CommandError. */
function requireMostlyGood({ format, rows, bad }: Found): void {
  if (bad <= rows / 2) return
  throw new CommandError(
    `${bad} of ${rows} rows have no destination or a malformed one, read as ` +
      `${formatOf(format).label}. Is it the right file and format? With --force the others are ` +
      'imported.',
  )
}

async function openFile(path: string): Promise<SourceFile> {
  const blob = Bun.file(path)
  if (!(await blob.exists())) {
    throw new CommandError(
      existsSync(path)
        ? `${path} is not a regular file: an import reads its files twice`
        : `${path} does not exist`,
    )
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
  /** Domains that the links may have. */
  hosts: string[]
  rowsMax?: number | undefined
}

async function receiverOf(account: string | undefined, dryRun: boolean): Promise<Receiver> {
  const call = await serviceOf(account)
  if (call) {
    return {
      send: (lines, before) => call('importBatch', { lines, dryRun, before }),
      hosts: await call('importHosts', {}),
    }
  }
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
  const { items } = await explained(url, hopcode.domains())
  const send: Send<string> = async (lines) => {
    const { results, links, bytes } = await explained(url, hopcode.importLines(lines, { dryRun }))
    return { results, stored: { links, urlBytes: bytes } }
  }
  const hosts = items.map(({ domain }) => domain)
  return { send, hosts, rowsMax: Math.min(Number(most), SENT_ROWS_MAX) }
}

interface CommandExport {
  account?: string | undefined
  format?: ExportFormat | undefined
  json?: Flag
}

async function exportTo(
  file: string,
  { account, format = formatByEnding(file), json }: CommandExport,
): Promise<void> {
  const isStream = file === '-'
  const chunks = exportChunks(await serviceOf(account), format)
  // The first chunk is read before the file is opened: a refusal leaves an existing file as it is.
  let chunk = await chunks.next()
  const out = isStream ? Bun.stdout.writer() : Bun.file(openOutput(file)).writer()
  const counted = { links: 0, bytes: 0 }
  using progress = new Rate()
  const count = linkCounter(format)
  for (; !chunk.done; chunk = await chunks.next()) {
    out.write(chunk.value)
    await out.flush()
    counted.bytes += Buffer.byteLength(chunk.value)
    counted.links = count(chunk.value)
    if (!isStream) progress.note('Exporting', { done: counted.links, unit: 'links' })
  }
  await out.end()
  progress[Symbol.dispose]()
  const text = json
    ? JSON.stringify({ file, format, ...counted })
    : `Exported to ${isStream ? 'standard output' : file}`
  // Standard output may be the export itself.
  if (isStream) await printNotice(text)
  else print(text)
}

const formatByEnding = (file: string): ExportFormat =>
  EXPORT_FORMATS.find((format) => file.toLowerCase().endsWith(`.${format}`)) ?? 'jsonl'

/**
 * Returns the number of links so far. The first line of a CSV file is none, and line feeds within
 * its quotes end none.
 */
function linkCounter(format: ExportFormat): (chunk: string | Uint8Array) => number {
  let links = format === 'csv' ? -1 : 0
  let isQuoted = false
  let start = ''
  return (chunk) => {
    for (const byte of Buffer.from(chunk as Uint8Array)) {
      if (byte === QUOTE && format === 'csv') isQuoted = !isQuoted
      if (byte !== LINE_FEED || isQuoted) {
        if (start.length < NO_LINK.length) start += String.fromCharCode(byte)
      } else {
        if (start !== NO_LINK) links++
        start = ''
      }
    }
    return Math.max(0, links)
  }
}

/** How a line of JSON begins that is no link. */
const NO_LINK = `{"${HEADER_FIELD}"`

const QUOTE = 0x22
const LINE_FEED = 0x0a

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
