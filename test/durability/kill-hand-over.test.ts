import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import { command, makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { PASSWORD, Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'

/** The long form: npm run test:durability -- kill-hand-over */
const ROUNDS = Number(process.env.KILL_HAND_OVER_ROUNDS ?? 6)
const LINKS = 3000
/** Of the time that the first move takes. */
const LATEST_KILL = 1.5
const FROM = 'enterprise@example.com'
const TO = 'pro@example.com'
const MOVE = '/app/links/move'

const rowOf = (n: number): string =>
  `https://example.com/${n},my-link-${n},${n % 7},"a,tag${n % 5}"`
const ROWS = Array.from({ length: LINKS }, (_, n) => rowOf(n))

async function printed(words: readonly string[], env: Settings): Promise<string> {
  const { code, out, err } = await command(words, env)
  if (code !== 0) throw new Error(err)
  return /\/app\/\w+\/[\w-]{43}/.exec(out)?.[0] ?? out
}

/** What the links have, whoever they belong to. */
function linksIn(env: Settings): unknown[] {
  using db = new Database(join(env.DATA_DIR ?? '', 'hopcode.db'), { readonly: true })
  const sql = `SELECT links.id, code, url, tags, path, count FROM links
    JOIN aliases ON aliases.link_id = links.id LEFT JOIN hits ON hits.link_id = links.id
    ORDER BY links.id`
  return db.query(sql).values()
}

/** The links without exactly one creation, or with a number of moves that their account denies. */
function historyProblems(env: Settings): unknown[] {
  using db = new Database(join(env.DATA_DIR ?? '', 'hopcode.db'), { readonly: true })
  const events = 'link_event_links AS own JOIN link_events ON own.event_id = link_events.id'
  return db
    .query(
      `SELECT code,
         (SELECT count(*) FROM ${events} WHERE kind = 'created'
            AND links.id BETWEEN own.link_id AND last_link) AS created,
         (SELECT count(*) FROM ${events} WHERE kind = 'moved' AND links.id = own.link_id) AS moved
       FROM links WHERE created <> 1
         OR moved % 2 <> (account_id <> (SELECT id FROM accounts WHERE name = ?))`,
    )
    .values(FROM)
}

const TITLE = `${ROUNDS} kills while links move: each has one account (seed ${SEED})`

test(TITLE, async () => {
  using folder = temporaryFolder()
  const env = unlimited(join(folder.path, 'data'))
  for (const plan of ['enterprise', 'pro']) await makeAccount(env, plan)
  const file = join(folder.path, 'links.csv')
  writeFileSync(file, `url,slug,hits,tags\n${ROWS.join('\n')}\n`)
  const random = seededRandom(SEED)
  let expected: unknown[] = []
  let cookies: Visitor['cookies'] | undefined
  let interrupted = 0
  let moveMs = 0
  for (let round = 0; round < ROUNDS; round++) {
    const service = await Service.start(env)
    const ann = new Visitor(service)
    if (cookies) for (const [name, value] of cookies) ann.cookies.set(name, value)
    else {
      await printed(['import', 'csv', file, '--account', FROM], env)
      expected = linksIn(env)
      const path = await printed(['account', 'reset-password', '--email', FROM], env)
      await ann.post(path, { password: PASSWORD })
      const words = ['account', 'member', 'add', '--account', TO, '--email', FROM]
      await ann.post(await printed([...words, '--role', 'admin'], env), {})
      cookies = ann.cookies
    }
    // From the account that is open to the other one.
    const at = `tag=tag${round % 5}`
    const { text, csrf } = await ann.get(`${MOVE}?${at}`)
    const account = /<option value="(\d+)"/.exec(text)?.[1] ?? ''
    expect(account).not.toBe('')
    const begun = performance.now()
    const sent = ann.post(MOVE, { account, at: '', csrf }).catch(() => undefined)
    if (round === 0) {
      await sent
      moveMs = performance.now() - begun
    } else await Bun.sleep(random() * LATEST_KILL * moveMs)
    await service.end('SIGKILL')
    if ((await sent) === undefined) interrupted++
    const checked = await command(['check'], env)
    expect([checked.code, checked.out.includes('PROBLEM')]).toEqual([0, false])
    expect(linksIn(env)).toEqual(expected)
    expect(historyProblems(env)).toEqual([])
    // The other direction.
    const again = await Service.start(env)
    const other = new Visitor(again)
    for (const [name, value] of cookies) other.cookies.set(name, value)
    await other.post('/app/account/open', { account }, { from: '/app/links' })
    cookies = other.cookies
    await again.end('SIGKILL')
  }
  expect(expected).toHaveLength(LINKS)
  expect(interrupted).toBeGreaterThan(0)
}, 240_000)
