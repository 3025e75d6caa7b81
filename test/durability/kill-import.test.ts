import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import {
  binary,
  command,
  makeAccount,
  Service,
  type Settings,
  unlimited,
} from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'

/** The long form: npm run test:durability -- kill-import */
const ROUNDS = Number(process.env.KILL_IMPORT_ROUNDS ?? 3)
const ROWS = 6000
const EMAIL = 'enterprise@example.com'
const CREATED = '2024-01-02'

/** A third are codes, a third aliases, and some differ in letter case only. */
function rowOf(n: number): string {
  const path = n % 3 === 0 ? `Code${n}xy` : n % 3 === 1 ? `my-link-${n}` : `CaSe${n - (n % 2)}z`
  const cased = n % 3 === 2 && n % 2 === 1 ? path.toLowerCase() : path
  return `https://example.com/${n},${cased},${n % 7},${CREATED},Title ${n},"a,tag${n % 5}"`
}

const ROW_TEXTS = Array.from({ length: ROWS }, (_, n) => rowOf(n))
const FILE = `url,slug,hits,created,title,tags\n${ROW_TEXTS.join('\n')}\n`

const words = (file: string) => ['import', 'csv', file, '--account', EMAIL]

/** What an import stores, without what differs between two folders: their secret keys. */
function contentOf(env: Settings): unknown[] {
  using db = new Database(join(env.DATA_DIR ?? '', 'hopcode.db'), { readonly: true })
  const all = (sql: string) => db.query(sql).values()
  return [
    all(`SELECT links.id, iif(path IS NULL, code, NULL), url, links.created_at, title, tags, path,
           any_case, folded, count, imported
         FROM links LEFT JOIN aliases ON aliases.link_id = links.id
         LEFT JOIN hits ON hits.link_id = links.id ORDER BY links.id`),
    all('SELECT link_count, url_bytes FROM accounts'),
    all('SELECT count FROM account_hits'),
    all('SELECT redirects, imported FROM hit_totals'),
    all('SELECT account_id, tag, link_id FROM link_tags ORDER BY 1, 2, 3'),
    // Each link was created once.
    all(`SELECT links.id, count(*) FROM links JOIN link_event_links AS own
         ON links.id BETWEEN own.link_id AND last_link GROUP BY 1 ORDER BY 1`),
  ]
}

test(
  `${ROUNDS} kills of an import or the service, then again: as without (seed ${SEED})`,
  async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'links.csv')
    writeFileSync(file, FILE)
    const whole = unlimited(join(folder.path, 'whole'))
    await makeAccount(whole)
    const startedAt = performance.now()
    {
      await using _ = await Service.start(whole)
      expect((await command(words(file), whole)).code).toBe(0)
    }
    const wholeMs = performance.now() - startedAt
    const expected = contentOf(whole)
    const random = seededRandom(SEED)
    let interrupted = 0
    for (let round = 0; round < ROUNDS; round++) {
      const env = unlimited(join(folder.path, `killed-${round}`))
      await makeAccount(env)
      const service = await Service.start(env)
      const child = Bun.spawn([await binary(), ...words(file)], {
        env,
        stdio: ['ignore', 'ignore', 'ignore'],
      })
      await Bun.sleep(random() * wholeMs)
      if (round % 2 === 0) child.kill('SIGKILL')
      else await service.end('SIGKILL')
      if ((await child.exited) !== 0) interrupted++
      await service.end('SIGKILL')
      await using _ = await Service.start(env)
      const again = await command(words(file), env)
      expect([again.code, again.err]).toEqual([0, ''])
      expect(contentOf(env)).toEqual(expected)
      expect((await command(['check'], env)).out).toContain('All is well.')
    }
    // A round that kills nothing shows nothing.
    expect(interrupted).toBeGreaterThan(0)
  },
  60_000 + ROUNDS * 30_000,
)
