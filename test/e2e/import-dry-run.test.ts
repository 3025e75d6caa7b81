import { expect, test } from 'bun:test'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import { movingCommands, remoteReceiver } from '../../src/cli/moving.ts'
import { Hopcode } from '../../src/client/client.ts'
import { databaseFile } from '../../src/db/open.ts'
import { isCreated, OUTCOMES, type Outcome } from '../../src/import/outcomes.ts'
import { type ImportOptions, readImport } from '../../src/import/plan.ts'
import { type ImportedRow, runImport, type Send } from '../../src/import/run.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { sharedRows } from '../support/database.ts'
import { fileOf } from '../support/imported.ts'
import { SEED } from '../support/seed.ts'

/**
 * A dry run has the results of the import where rows have nothing in common, and the same import
 * again changes nothing.
 */

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
const SEEN = OUTCOMES.filter((outcome) => !['bad_row', 'repeated', 'quota'].includes(outcome))

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
      ...rows.map(({ path, others, url, domain, disabled }, n) => ({
        ...(n % 7 === 6 && domain !== '' && { domain }),
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
async function senderOf(
  app: TestApp,
  { account, isRemote }: Import,
  dryRun: boolean,
): Promise<Send<string>> {
  if (isRemote) {
    // Budgets are full again.
    app.advance(60 * 60 * 1000)
    const hopcode = new Hopcode({ url: app.url, apiKey: app.key(account) })
    return (await remoteReceiver(hopcode, app.url, dryRun)).send
  }
  return (lines, before) =>
    movingCommands.importBatch(app.administration, {
      account: `${account}@example.com`,
      lines,
      dryRun,
      before,
    })
}

/** The result of each row, in the order of the report. */
async function report(app: TestApp, work: Import, dryRun: boolean, rowsMax: number) {
  const { content } = work
  const options = { ...work.options, as: 'lines' as const, dryRun, batchMax: rowsMax }
  const send = await senderOf(app, work, dryRun)
  const steps = runImport(readImport([fileOf(content)], options), { send })
  const rows: ImportedRow[] = []
  let step = await steps.next()
  for (; !step.done; step = await steps.next()) rows.push(...step.value)
  return { rows, summary: step.value }
}

const isThere = (outcome: Outcome) => ['exists', 'kept', 'path_taken'].includes(outcome)

/** The link at the address is one that an earlier row creates, perhaps without this address. */
const isOfEarlierRow = ({ outcome, code }: ImportedRow) => outcome === 'kept' && code === null

/**
 * What a row has in common with stored links decides as in the import. What it has in common with
 * earlier rows is only known by its address, and those rows may have another result than the dry
 * run knew: see docs/move.md.
 */
function expectForetold(dry: readonly ImportedRow[], real: readonly ImportedRow[]): void {
  expect(dry.map(({ line }) => line)).toEqual(real.map(({ line }) => line))
  /** The codes of links that the import creates, and of those that exist only in the dry run. */
  const planned = new Set(
    real.flatMap(({ outcome, code }) => (isCreated(outcome) && code ? [code] : [])),
  )
  for (const [n, row] of dry.entries()) {
    const { outcome = 'bad_row' } = real[n] ?? {}
    if (isCreated(row.outcome) && row.code) planned.add(row.code)
    if (row.outcome === 'repeated') {
      const first = real.find(({ line }) => row.message === `Repeats line ${line}`)
      expect(first).toBeDefined()
      // A link whose further aliases are in use is created without them: they stay free for others.
      const hasItsNames = isCreated(first?.outcome ?? 'bad_row') && first?.message === ''
      expect(isCreated(outcome) && hasItsNames).toBe(false)
    } else if (isCreated(row.outcome) || isOfEarlierRow(row) || planned.has(row.code ?? ''))
      expect(isCreated(outcome) || isThere(outcome)).toBe(true)
    // An earlier request of the import has created what is refused.
    else if (outcome === 'exists' && planned.has(real[n]?.code ?? ''))
      expect(['not_allowed', 'blocked', 'exists']).toContain(row.outcome)
    else {
      // The code of a link that an earlier row creates is not known before.
      const isNew = row.code === null && planned.has(real[n]?.code ?? '')
      expect(real[n]).toEqual(isNew ? { ...row, code: real[n]?.code ?? null } : row)
    }
  }
}

const TITLE = `dry runs of ${ROUNDS} random files foretell the imports (seed ${SEED})`

test(TITLE, async () => {
  await using app = await testApp()
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
      expectForetold(dry.rows, real.rows)
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

test('a dry run on the machine of the service counts the whole file for the quota', async () => {
  await using app = await testApp({ env: { FREE_LINKS_MAX: '3' } })
  app.key('free')
  const content = `url\n${[1, 2, 3, 4, 5].map((n) => `https://e.com/${n}`).join('\n')}\n`
  const options: ImportOptions = { format: 'auto' }
  const work: Import = { content, options, account: 'free', isRemote: false }
  const expected = ['created', 'created', 'created', 'quota', 'quota']
  for (const dryRun of [true, false]) {
    const { rows } = await report(app, work, dryRun, 2)
    expect(rows.map(({ outcome }) => outcome as string)).toEqual(expected)
  }
})
