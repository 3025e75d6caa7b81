import { Database } from 'bun:sqlite'
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync, utimesSync } from 'node:fs'
import { basename, join } from 'node:path'
import { databaseFile } from '../../src/db/open.ts'
import { dayOf, HOURS_OF_DAY, hourOf } from '../../src/hits/series.ts'
import { countAdder, countsOf } from '../../src/hits/store.ts'
import { HOUR } from '../../src/lib/clock.ts'
import { HopcodeClient } from './hopcode-client.ts'
import { copyMillion, KEY_FILE, MILLION, type MillionFolder, scatteredId } from './million.ts'
import { seededRandom } from './realistic-urls.ts'
import type { Progress } from './rounds.ts'
import { startServer } from './server.ts'
import { hopcode, WITHOUT_LIMITS } from './variants.ts'

/** Increment it when `describe` changes the content of the folder. */
const RECIPE = 2
const SEED = 7
const ACCOUNT = 1

/** Links of each tag. Every tenth link has a tag. */
export const COMMON_TAG = { tag: 'campaign', links: 60_000 }
export const RARE_TAG = { tag: 'keynote', links: 40 }
const OTHER_TAGS = 100
const TAGGED = 100_000
/** Links with this title; they also have the rare tag. */
export const TITLE = 'Spring Poster'
const LINKS_WITH_HITS = 300_000
/** Random hits per day and per hour; few links get most of them. */
const HITS_A_DAY = 4000
const HITS_AN_HOUR = 500
const DAYS = 390
const DAYS_OF_HOURS = 90

/**
 * The million links of `plain`, of which 100,000 have tags and 300,000 have hits, with hits per day
 * and hour up to the day on which the folder was created. It is kept like that of `millionFolder`.
 * The statements fit older schemas too, and the rest is done by `program`, so that the folder is
 * one of that program.
 */
export async function describedMillion(
  plain: MillionFolder,
  program: string[],
  say: Progress,
): Promise<MillionFolder> {
  const path = `${plain.path}-described-${RECIPE}`
  if (!existsSync(path)) {
    say('describing 100,000 links and counting hits of 300,000; they are kept for later runs')
    await create(plain, program, path)
  }
  utimesSync(path, new Date(), new Date())
  return { ...plain, path }
}

async function create(plain: MillionFolder, program: string[], path: string): Promise<void> {
  const parent = mkdtempSync(`${path}-unfinished-`)
  const beside = join(parent, basename(path))
  try {
    copyMillion(plain, beside)
    copyFileSync(join(plain.path, KEY_FILE), join(beside, KEY_FILE))
    const db = new Database(databaseFile(beside))
    db.run('PRAGMA synchronous = OFF')
    const titled = db.transaction(() => {
      addHits(db)
      return addTags(db)
    })()
    db.close()
    await using server = await startServer(hopcode(program, beside, WITHOUT_LIMITS))
    const client = new HopcodeClient(server.origin, plain.apiKey)
    const described = { title: TITLE, tags: [COMMON_TAG.tag, RARE_TAG.tag] }
    for (const code of titled) await client.patchLink(code, described)
    await server.stop()
    renameSync(beside, path)
  } finally {
    rmSync(parent, { recursive: true, force: true })
  }
}

/** Returns the codes of the links that get the title. */
function addTags(db: Database): string[] {
  const setTag = db.prepare<{ code: string }, [string, number]>(
    'UPDATE links SET tags = json_array(?) WHERE id = ? RETURNING code',
  )
  const codes = Array.from({ length: TAGGED }, (_, n) => {
    const tag = n % 5 < 3 ? COMMON_TAG.tag : `customer-${n % OTHER_TAGS}`
    return setTag.get(tag, n * (MILLION / TAGGED) + 1)?.code ?? ''
  })
  return codes.filter((_, n) => n % (TAGGED / RARE_TAG.links) === 0)
}

function addHits(db: Database): void {
  const random = seededRandom(SEED)
  // A few links have most of the hits; they are scattered over all ids.
  const draw = () => scatteredId(Math.floor(LINKS_WITH_HITS ** random()))
  const isCurrent = db.query("SELECT 1 FROM pragma_table_info('hit_days')").get() !== null
  const count = isCurrent ? countAdder(db) : olderCounter(db)
  const today = dayOf(hourOf(Date.now()))
  const add = (hour: number, draws: number, hasHours: boolean) =>
    count(countsOf(Uint32Array.from({ length: draws }, draw)), hour * HOUR, hasHours)
  for (let day = today - DAYS; day <= today - DAYS_OF_HOURS; day++) {
    add(day * HOURS_OF_DAY, HITS_A_DAY, false)
  }
  for (let hour = (today - DAYS_OF_HOURS + 1) * HOURS_OF_DAY; dayOf(hour) <= today; hour++) {
    add(hour, HITS_AN_HOUR, true)
  }
  if (!isCurrent) {
    db.run(`INSERT INTO hits (link_id, account_id, count)
            SELECT id, ${ACCOUNT}, sum(count) FROM hits_by_day WHERE scope = 0 GROUP BY id`)
  }
  // Hits of the other links are older than the stored days.
  const earlier = db.prepare<null, [number, number, number]>(
    `INSERT INTO hits (link_id, account_id, count) VALUES (?1, ?2, ?3)
     ON CONFLICT DO UPDATE SET count = count + ?3`,
  )
  for (let n = 0; n < LINKS_WITH_HITS; n++) {
    earlier.run(scatteredId(n), ACCOUNT, 1 + Math.floor(LINKS_WITH_HITS / (n + 1)))
  }
  db.run(`INSERT INTO account_hits (account_id, count) SELECT ${ACCOUNT}, sum(count) FROM hits
          WHERE true ON CONFLICT DO UPDATE SET count = excluded.count`)
}

/**
 * Counts as the commits before `hit_days` do, which `compare` measures. The tables of 3f7ad441 and
 * before have a column more.
 */
function olderCounter(db: Database) {
  const dimension = db.query(
    "SELECT 1 FROM pragma_table_info('hits_by_day') WHERE name = 'dimension'",
  )
  const [column, value] = dimension.get() ? [', dimension', ", ''"] : ['', '']
  const into = (step: 'day' | 'hour') =>
    db.prepare<null, [number, number, number, number]>(
      `INSERT INTO hits_by_${step} (${step}, scope, id${column}, count)
       VALUES (?1, ?2, ?3${value}, ?4) ON CONFLICT DO UPDATE SET count = count + ?4`,
    )
  const [byDay, byHour] = [into('day'), into('hour')]
  return (counts: Uint32Array, now: number, hasHours: boolean): void => {
    const hour = hourOf(now)
    const add = (scope: 0 | 1, id: number, count: number) => {
      if (hasHours) byHour.run(hour, scope, id, count)
      byDay.run(dayOf(hour), scope, id, count)
    }
    let sum = 0
    for (let pair = 0; pair < counts.length; pair += 2) {
      add(0, counts[pair] as number, counts[pair + 1] as number)
      sum += counts[pair + 1] as number
    }
    add(1, ACCOUNT, sum)
  }
}
