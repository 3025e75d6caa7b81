import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../bench/lib/realistic-urls.ts'
import { DATABASE_VERSION, versionOf } from '../../src/db/migrate.ts'
import { command, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { nextRelease } from '../support/next-release.ts'
import { readKnown, releases, unpackRelease } from '../support/release-folder.ts'
import { SEED } from '../support/seed.ts'

/**
 * The release after this one upgrades a folder of the newest stored one, and is killed meanwhile.
 * The long form: npm run test:durability -- kill-upgrade
 */

const ROUNDS = Number(process.env.UPGRADE_KILL_ROUNDS ?? 4)
const RELEASE = releases().at(-1) ?? ''
const KNOWN = readKnown(RELEASE)
const NEXT = DATABASE_VERSION + 1

const versionIn = (file: string): number => {
  using db = new Database(file, { readonly: true })
  return versionOf(db)
}
const copiesIn = (path: string): string[] =>
  readdirSync(path).filter((name) => name.startsWith(`hopcode.db.before-${NEXT}-`))

async function expectAll(service: Service): Promise<void> {
  const hits: Record<string, number> = {}
  for (const code of Object.keys(KNOWN.hits)) hits[code] = await service.hitCount(code)
  expect(hits).toEqual(KNOWN.hits)
  for (const [path, url] of Object.entries(KNOWN.destinations)) {
    expect((await service.fetch(`/${path}`)).headers.get('location')).toBe(url)
  }
}

const BEGUN = `hopcode.db.before-${NEXT}`
const hasBegun = (path: string) => readdirSync(path).some((name) => name.startsWith(BEGUN))

/** Lets `words` upgrade the folder, and kills them `afterMs` after they began to. */
async function upgrade(words: string[], path: string, afterMs?: number): Promise<number> {
  const env = { ...unlimited(path), BASE_URL: 'http://hop.test' }
  const child = Bun.spawn([...words, 'account', 'list'], { env, stdout: 'ignore', stderr: 'pipe' })
  while (child.exitCode === null && !hasBegun(path)) await Bun.sleep(1)
  const begunAt = performance.now()
  if (afterMs !== undefined) {
    await Bun.sleep(afterMs)
    child.kill('SIGKILL')
  }
  await child.exited
  if (afterMs === undefined && child.exitCode !== 0) {
    throw new Error(await new Response(child.stderr).text())
  }
  return performance.now() - begunAt
}

/** Continues with this release: with the copy, if the next one was done. */
async function goBack(path: string, settings: Record<string, string>): Promise<void> {
  if (versionIn(join(path, 'hopcode.db')) < NEXT) return
  const { code, err } = await command(['serve'], { ...settings, PORT: '0' })
  const [, words = ''] = /before the upgrade: hopcode (.*)$/m.exec(err) ?? []
  const copy = join(path, copiesIn(path).at(-1) ?? '')
  expect([code, words]).toEqual([1, `restore ${copy}`])
  expect(await command(words.split(' '), settings)).toMatchObject({ code: 0 })
}

test(`${ROUNDS} kills of an upgrade lose nothing (seed ${SEED})`, async () => {
  using folder = temporaryFolder()
  using next = nextRelease()
  const [runtime = '', main = ''] = next.words
  const random = seededRandom(SEED)
  const whole = join(folder.path, 'whole')
  mkdirSync(whole)
  unpackRelease(RELEASE, whole)
  const wholeMs = await upgrade(next.words, whole)
  expect([versionIn(join(whole, 'hopcode.db')), copiesIn(whole).length]).toEqual([NEXT, 1])

  const ends = { before: 0, after: 0 }
  for (let round = 0; round <= ROUNDS; round++) {
    const path = join(folder.path, `round-${round}`)
    mkdirSync(path)
    unpackRelease(RELEASE, path)
    const env = { ...unlimited(path), BASE_URL: 'http://hop.test', ALIASES: 'all' }
    // The last one is not killed, so that at least one is taken back.
    await upgrade(next.words, path, round === ROUNDS ? undefined : random() * wholeMs)
    ends[versionIn(join(path, 'hopcode.db')) === NEXT ? 'after' : 'before']++
    const completes = random() < 0.5 && round < ROUNDS
    if (!completes) await goBack(path, env)
    {
      await using service = completes
        ? await Service.start(env, [runtime], main)
        : await Service.start(env)
      await expectAll(service)
      expect(await service.end('SIGTERM')).toBe(0)
    }
    const checked = completes
      ? await command(['check'], env, [runtime], main)
      : await command(['check'], env)
    expect(checked).toMatchObject({ code: 0, out: expect.stringContaining('All is well.') })
    expect(versionIn(join(path, 'hopcode.db'))).toBe(completes ? NEXT : DATABASE_VERSION)
  }
  console.log(`kills: ${ends.before} before the upgrade was done, ${ends.after} after it`)
}, 1_800_000)

test('check --upgrade says what the next release would do, and changes nothing', async () => {
  using folder = temporaryFolder()
  using next = nextRelease()
  const [runtime = '', main = ''] = next.words
  const path = join(folder.path, 'data')
  mkdirSync(path)
  unpackRelease(RELEASE, path)
  const env = unlimited(path)
  await using service = await Service.start(env)
  const upgraded = versionIn(join(path, 'hopcode.db'))
  const { code, out } = await command(['check', '--upgrade', '--json'], env, [runtime], main)
  const { findings } = JSON.parse(out) as { findings: { check: string; says: string }[] }
  expect([code, findings.find(({ check }) => check === 'upgrade')]).toEqual([
    0,
    {
      check: 'upgrade',
      status: 'ok',
      says: expect.stringMatching(
        new RegExp(
          `^version ${upgraded} becomes ${NEXT}\\. .* \\d+\\.\\d s; .*needs \\d+ MiB.*free$`,
        ),
      ),
    } as never,
  ])
  expect([versionIn(join(path, 'hopcode.db')), copiesIn(path)]).toEqual([upgraded, []])
  expect(readdirSync(path).filter((name) => name.startsWith('.hopcode'))).toEqual([])
  await expectAll(service)

  const now = await command(['check', '--upgrade'], env)
  expect(now).toMatchObject({ code: 0, out: expect.stringContaining('none is needed') })
  const broken = await command(['check', '--upgrade'], { ...env, PORT: 'http' }, [runtime], main)
  expect(broken).toMatchObject({ code: 1, err: expect.stringContaining('PORT') })
}, 300_000)
