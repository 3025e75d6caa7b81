import { expect, test } from 'bun:test'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import { movingCommands, remoteReceiver } from '../../src/cli/moving.ts'
import { Hopcode } from '../../src/client/client.ts'
import { databaseFile } from '../../src/db/open.ts'
import { isCreated, OUTCOMES } from '../../src/import/outcomes.ts'
import {
  type ImportedRow,
  type ImportOptions,
  run,
  type SendLines,
  scan,
} from '../../src/import/plan.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { sharedRows } from '../support/database-rows.ts'
import { fileOf } from '../support/imported.ts'

/** A dry run has the results of the import, and the same import again changes nothing. */

const SEED = Number(process.env.DRY_RUN_SEED ?? Date.now() % 2 ** 31)
const ROUNDS = Number(process.env.DRY_RUN_ROUNDS ?? 30)
const ROWS_MAX = 30

type Choose = <Item>(items: readonly Item[]) => Item

interface Row {
  path: string | undefined
  others: string[]
  url: string
  domain: string
  password: string
  disabled: boolean
}

const URLS = [
  'https://example.com/1',
  'HTTPS://Example.com:443/1',
  'https://example.com/2',
  'https://example.com/a/../2',
  'https://example.com/\u00f6',
  'https://example.com/%C3%B6',
  `https://example.com/${'long'.repeat(20)}`,
  'http://hop.test/x',
  'mailto:a@example.com',
  'https://',
  '',
]

/** What random files certainly have. */
const SEEN = OUTCOMES.filter((outcome) => outcome !== 'bad_row')

/** Few, so that many rows share one. `round`: no other round has it. */
const pathsOf = (round: number): (string | undefined)[] => [
  undefined,
  ...['Code', 'CODE', 'code'].map((word) => `${word}${round}xyz`),
  ...['Other', 'other'].map((word) => `${word}${round}uvw`),
  ...['Sale', 'sale'].map((word) => `${word}-${round}`),
  `a/b/${round}`,
  `f\u00f6\u00f6-${round}`,
  `api/${round}`,
  `../${round}`,
  '',
]

function rowOf(choose: Choose, paths: readonly (string | undefined)[]): Row {
  const others = choose([[], [], [], [choose(paths)], [choose(paths), choose(paths)]])
  return {
    path: choose(paths),
    others: others.filter((path) => path !== undefined),
    url: choose(URLS),
    domain: choose(['', '', 'a.test', 'b.test']),
    password: choose(['', '', '', 'secret']),
    disabled: choose([false, false, false, true]),
  }
}

/** Content of a file of one of several services. */
const FILES: Readonly<Record<string, (rows: readonly Row[]) => string>> = {
  csv: (rows) =>
    [
      'slug,url,domain,password,disabled',
      ...rows.map(({ path = '', url, domain, password, disabled }) =>
        [path, url, domain, password, disabled].join(),
      ),
    ].join('\n'),
  bitly: (rows) =>
    JSON.stringify({
      links: rows.map(({ path, others, url, disabled }) => ({
        ...(path !== undefined && { link: `https://a.test/${path}`, id: `a.test/${path}` }),
        custom_bitlinks: others.map((other) => `https://a.test/${other}`),
        long_url: url,
        is_deleted: disabled,
      })),
    }),
  // Its paths lead to their links in any case.
  sink: (rows) =>
    JSON.stringify({
      links: rows.map(({ path, url, password }) => ({ id: 'x', slug: path, url, password })),
    }),
  hopcode: (rows) =>
    [
      { hopcode_export: 1 },
      ...rows.map(({ path, others, url, disabled }, n) => ({
        ...(n % 3 === 0 ? { code: path } : { aliases: path === undefined ? [] : [path] }),
        ...(n % 2 === 0 && { aliases_any_case: others }),
        url,
        paused: disabled,
      })),
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
}

interface Import {
  content: string
  options: ImportOptions
  account: string
  isRemote: boolean
}

/** As the command does it on this machine, or from another one. */
async function senderOf(app: TestApp, { account, isRemote }: Import): Promise<SendLines> {
  if (isRemote) {
    // Budgets are full again.
    app.advance(60 * 60 * 1000)
    const hopcode = new Hopcode({ url: app.url, apiKey: app.key(account) })
    return (await remoteReceiver(hopcode, app.url)).send
  }
  return (lines, dryRun) =>
    movingCommands.importBatch(app.administration, {
      account: `${account}@example.com`,
      lines,
      ...(dryRun && { dryRun }),
    })
}

/** The result of each row, in the order of the report. */
async function report(app: TestApp, work: Import, dryRun: boolean, rowsMax: number) {
  const { content } = work
  const options = { ...work.options, dryRun, rowsMax }
  const found = await scan([fileOf(content)], options)
  const steps = run(found, options, await senderOf(app, work))
  const rows: ImportedRow[] = []
  let step = await steps.next()
  for (; !step.done; step = await steps.next()) rows.push(...step.value)
  return { rows, summary: step.value }
}

/** Results, without the codes that only the import itself knows. */
const comparable = ({ rows, summary }: Awaited<ReturnType<typeof report>>) => [
  summary,
  ...rows.map(({ code, ...row }) => row),
]

const TITLE = `dry runs of ${ROUNDS} random files have the results of the imports (seed ${SEED})`

test(TITLE, async () => {
  await using app = await testApp({
    env: { FREE_LINKS_MAX: '5', PRO_URL_BYTES_MAX: '200' },
  })
  // Without the time of a key's last use.
  const content = () =>
    [...sharedRows(databaseFile(app.dataDir))].filter((row) => !row.startsWith('api_keys '))
  const random = seededRandom(SEED)
  const choose: Choose = (items) => items[Math.floor(random() * items.length)] as never
  const seen = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const account = `${choose(['free', 'pro', 'enterprise'])}-${round}`
    const other = `enterprise-other-${round}`
    app.key(account)
    app.key(other)
    const paths = pathsOf(round)
    const rows = (most: number) =>
      Array.from({ length: 1 + Math.floor(random() * most) }, () => rowOf(choose, paths))
    const file = (all: readonly Row[]) => choose(Object.values(FILES))(all)
    const options: ImportOptions = {
      format: 'auto',
      domains: choose([['a.test', 'b.test'], ['b.test', 'a.test'], ['b.test']]),
      passwords: choose(['pause', 'skip', 'open']),
      skipDisabled: choose([false, true]),
    }
    const isRemote = round % 4 === 0
    const work: Import = { content: file(rows(ROWS_MAX)), options, account, isRemote }
    try {
      for (const owner of [other, account]) {
        await report(
          app,
          { ...work, content: file(rows(3)), account: owner, isRemote: false },
          false,
          1000,
        )
      }
      const before = content()
      const rowsMax = () => choose([1, 2, 5, 1000])
      const dry = await report(app, work, true, rowsMax())
      expect(content()).toEqual(before)
      const real = await report(app, work, false, rowsMax())
      expect(comparable(dry)).toEqual(comparable(real))
      for (const [n, { code }] of dry.rows.entries()) {
        if (code !== null) expect(code).toBe(real.rows[n]?.code as string)
      }
      const after = content()
      const again = await report(app, work, false, rowsMax())
      for (const [n, { outcome }] of real.rows.entries()) {
        seen.add(outcome)
        const expected = isCreated(outcome) ? ['exists'] : [outcome, 'exists', 'kept']
        expect(expected).toContain(again.rows[n]?.outcome as string)
      }
      expect(content()).toEqual(after)
    } catch (error) {
      throw new Error(`round ${round}: ${JSON.stringify(work)}`, { cause: error })
    }
  }
  if (ROUNDS >= 300) expect([...seen].sort()).toEqual(SEEN.toSorted())
}, 120_000)
