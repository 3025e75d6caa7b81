// How fast are a million rows imported, and how much memory do the command and the service need?
// npm run bench -- import --rounds 1
import { createWriteStream, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { atLeast, atMost, measureVariants, type Plan, value } from '../lib/figures.ts'
import { createAccount } from '../lib/hopcode-client.ts'
import { seededRandom } from '../lib/realistic-urls.ts'
import type { Figures, Progress } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Server, startServer } from '../lib/server.ts'
import { ACCOUNT_EMAIL, hopcode, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const ROWS = 1_000_000
/** In `compare`, which imports every form with both commits in each round. */
export const COMPARED_ROWS = 200_000
const SEED = 20_260_301
const SIGNS = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789'
const PATH_LENGTH = 6
const SAMPLE_MS = 200
const MIB = 1024 * 1024

interface Row {
  path: string
  url: string
  created: string
  hits: number
  title: string
}

/** A file: what it begins with, each row, what is between rows, and its end. */
interface Form {
  name: string
  begin: string
  row: (row: Row) => string
  between: string
  end: string
}

const FORMS: readonly Form[] = [
  {
    name: 'CSV',
    begin: 'slug,url,created,clicks,title\n',
    row: ({ path, url, created, hits, title }) => `${path},${url},${created},${hits},"${title}"`,
    between: '\n',
    end: '\n',
  },
  {
    name: 'JSON of Kutt',
    begin: '{"data":[',
    row: ({ path, url, created, hits, title }) =>
      JSON.stringify({
        address: path,
        target: url,
        created_at: created,
        visit_count: hits,
        description: title,
      }),
    between: ',',
    end: ']}',
  },
  {
    name: 'SQL of YOURLS',
    begin: 'INSERT INTO `yourls_url` (`keyword`, `url`, `timestamp`, `clicks`, `title`) VALUES\n',
    row: ({ path, url, created, hits, title }) =>
      `('${path}','${url}','${created}',${hits},'${title}')`,
    between: ',\n',
    end: ';\n',
  },
]

export const importing: Scenario = {
  name: 'import',
  question: 'How fast are a million rows imported, and how much memory does that take?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  const rows = options.rows ?? ROWS
  const csv = FORMS[0]?.name as string
  const plan: Plan<Form> = {
    variants: FORMS,
    measure: async (form) => ({ figures: await measureImport(form, rows, options) }),
    metrics: [
      { key: 'rate', label: 'rows/s', digits: 0, ratio: false },
      { key: 'again', label: 'rows/s of the same file again', digits: 0, ratio: false },
      { key: 'commandMicros', label: 'CPU µs of the command per row', digits: 1, ratio: false },
      { key: 'serviceMicros', label: 'CPU µs of the service per row', digits: 1, ratio: false },
      { key: 'command', label: 'memory of the command, MiB', digits: 0, ratio: false },
      { key: 'service', label: 'growth of the service, MiB', digits: 0, ratio: false },
    ],
    figures: {
      ...Object.fromEntries(
        FORMS.map(({ name }) => [
          `rows/s, ${name}`,
          value(name, 'rate', ' /s', 0, atLeast(10_000)),
        ]),
      ),
      'rows/s of the same CSV again': value(csv, 'again', ' /s', 0, atLeast(50_000)),
      'memory of the command': value(csv, 'command', ' MiB', 0, atMost(250)),
      'growth of the service': value(csv, 'service', ' MiB', 0, atMost(100)),
    },
    settings: { rows },
    notes: ['A tenth of the paths become aliases, and a few because they differ in letter case.'],
  }
  return await measureVariants(plan, options, say)
}

async function measureImport(form: Form, rows: number, options: LoadOptions): Promise<Figures> {
  using workspace = await emptyWorkspace(options)
  const { program, dataDir, temporaryPath } = workspace
  const file = join(temporaryPath, 'links')
  await pipeline(Readable.from(textOf(form, rows)), createWriteStream(file))
  createAccount(program, dataDir)
  await using server = await startServer(hopcode(program, dataDir, WITHOUT_LIMITS))
  const report = join(temporaryPath, 'report.csv')
  const command = [...program, 'import', 'auto', file, '--account', ACCOUNT_EMAIL]
  const first = await timed(server, [...command, '--report', report], { dataDir, rows })
  if (!existsSync(report)) throw new Error('the import has written no report')
  rmSync(report)
  const second = await timed(server, command, { dataDir, rows })
  await server.stop()
  return { ...first, again: second.rate ?? Number.NaN }
}

/** Kutt's random paths: a few differ in letter case only. A tenth are longer, with a hyphen. */
function* textOf({ begin, row, between, end }: Form, rows: number): Generator<string> {
  const random = seededRandom(SEED)
  const sign = () => SIGNS[Math.floor(random() * SIGNS.length)]
  yield begin
  for (let n = 0; n < rows; n++) {
    const path = n % 10 === 0 ? `campaign-${n}` : Array.from({ length: PATH_LENGTH }, sign).join('')
    const text = row({
      path,
      url: `https://shop.example.com/products/${n}?utm_source=newsletter&utm_medium=email`,
      created: `20${10 + (n % 14)}-03-01 12:00:00`,
      hits: n % 100,
      title: `Product ${n}`,
    })
    yield n === 0 ? text : between + text
  }
  yield end
}

interface Timed {
  dataDir: string
  rows: number
}

async function timed(
  server: Server,
  command: string[],
  { dataDir, rows }: Timed,
): Promise<Figures> {
  const idle = server.memory().resident
  let highest = idle
  const sample = () => {
    highest = Math.max(highest, server.memory().resident)
  }
  const timer = setInterval(sample, SAMPLE_MS)
  const cpuBefore = server.cpuSeconds()
  const startedAt = performance.now()
  const child = Bun.spawn(command, {
    env: { ...process.env, DATA_DIR: dataDir },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const out = await new Response(child.stdout).text()
  const code = await child.exited
  clearInterval(timer)
  if (code !== 0) throw new Error(`the import ended with ${code}:\n${out}`)
  const used = child.resourceUsage()
  return {
    rate: (rows / (performance.now() - startedAt)) * 1000,
    commandMicros: Number(used?.cpuTime.total ?? 0) / rows,
    serviceMicros: ((server.cpuSeconds() - cpuBefore) / rows) * 1e6,
    command: Number(used?.maxRSS ?? 0) / MIB,
    service: highest - idle,
  }
}
