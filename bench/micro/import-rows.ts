// How fast are a million rows imported, and how much memory do the command and the service need?
// bun bench/micro/import-rows.ts [rows] [csv|json|sql]

import { createWriteStream, type WriteStream } from 'node:fs'
import { join } from 'node:path'
import { createAccount } from '../lib/hopcode-client.ts'
import { describeMachine } from '../lib/machine.ts'
import { seededRandom } from '../lib/realistic-urls.ts'
import { startServer } from '../lib/server.ts'
import { ACCOUNT_EMAIL, hopcode, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const SEED = 20_260_301
const SIGNS = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789'
const PATH_LENGTH = 6

interface Row {
  path: string
  url: string
  created: string
  hits: number
  title: string
}

/** Kutt's random paths: a few differ in letter case only. A tenth are longer, with a hyphen. */
function* rowsOf(count: number): Generator<Row> {
  const random = seededRandom(SEED)
  for (let n = 0; n < count; n++) {
    const signs = Array.from(
      { length: PATH_LENGTH },
      () => SIGNS[Math.floor(random() * SIGNS.length)],
    )
    yield {
      path: n % 10 === 0 ? `campaign-${n}` : signs.join(''),
      url: `https://shop.example.com/products/${n}?utm_source=newsletter&utm_medium=email`,
      created: `20${10 + (n % 14)}-03-01 12:00:00`,
      hits: n % 100,
      title: `Product ${n}`,
    }
  }
}

/** The beginning, each row and the end of a file of each form. */
const FORMS: Readonly<Record<string, [string, (row: Row, n: number) => string, string]>> = {
  csv: [
    'slug,url,created,clicks,title\n',
    ({ path, url, created, hits, title }) => `${path},${url},${created},${hits},"${title}"\n`,
    '',
  ],
  json: [
    '{"version":"1.0","links":[',
    ({ path, url, created, hits, title }, n) => {
      const link = { address: path, target: url, created_at: created, visit_count: hits, title }
      return `${n === 0 ? '' : ','}${JSON.stringify(link)}`
    },
    ']}',
  ],
  sql: [
    'INSERT INTO `yourls_url` (`keyword`, `url`, `timestamp`, `clicks`, `title`) VALUES\n',
    ({ path, url, created, hits, title }, n) =>
      `${n === 0 ? '' : ',\n'}('${path}','${url}','${created}',${hits},'${title}')`,
    ';\n',
  ],
}

const rows = Number(process.argv[2] ?? 1_000_000)
const form = process.argv[3] ?? 'csv'
const { processor, cores, load, bun, commit } = describeMachine()
console.log(`${cores} x ${processor}, load ${load.toFixed(2)}, bun ${bun}, commit ${commit}`)

using workspace = await emptyWorkspace({ source: false } as Parameters<typeof emptyWorkspace>[0])
const { program, dataDir, temporaryPath } = workspace
const file = join(temporaryPath, `links.${form}`)
await writeFile(file)
createAccount(program, dataDir)
await using server = await startServer(hopcode(program, dataDir, WITHOUT_LIMITS))
const idle = server.memory().resident
console.log(`${form}, ${rows.toLocaleString('en')} rows`)
await timed('import')
await timed('the same again')
await server.stop()

async function writeFile(path: string): Promise<void> {
  const [begin, rowText, end] = FORMS[form] ?? []
  if (!rowText) throw new Error(`no form ${form}: there are ${Object.keys(FORMS).join(', ')}`)
  const out = createWriteStream(path)
  out.write(begin)
  let n = 0
  for (const row of rowsOf(rows)) await write(out, rowText(row, n++))
  await new Promise<void>((resolve) => out.end(end, resolve))
}

async function write(out: WriteStream, text: string): Promise<void> {
  if (!out.write(text)) await new Promise((resolve) => out.once('drain', resolve))
}

async function timed(what: string): Promise<void> {
  const cpuBefore = server.cpuSeconds()
  const startedAt = performance.now()
  const child = Bun.spawn([...program, 'import', 'auto', file, '--account', ACCOUNT_EMAIL], {
    env: { ...process.env, DATA_DIR: dataDir },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  let highest = 0
  const timer = setInterval(() => {
    highest = Math.max(highest, server.memory().resident)
  }, 200)
  const out = await new Response(child.stdout).text()
  const code = await child.exited
  clearInterval(timer)
  const seconds = (performance.now() - startedAt) / 1000
  const used = child.resourceUsage()
  const commandCpu = Number(used?.cpuTime.total ?? 0) / 1e6
  const micros = (cpu: number) => `${((cpu / rows) * 1e6).toFixed(1)} µs`
  if (code !== 0) throw new Error(`the import ended with ${code}:\n${out}`)
  console.log(
    `${what}: ${Math.round(rows / seconds)} rows/s in ${seconds.toFixed(1)} s; CPU a row: ` +
      `command ${micros(commandCpu)}, service ${micros(server.cpuSeconds() - cpuBefore)}; ` +
      `command ${Math.round(Number(used?.maxRSS ?? 0) / 1024 / 1024)} MiB, ` +
      `service +${Math.round(highest - idle)} MiB`,
  )
}
