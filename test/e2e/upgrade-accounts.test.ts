import { expect, test } from 'bun:test'
import { newApiKey } from '../../src/accounts/keys.ts'
import { describeSecret, newTotpSecret, sealSecret } from '../../src/accounts/second-factor.ts'
import { newToken, readSecretKey, SecretHasher } from '../../src/accounts/secrets.ts'
import { newDeviceToken } from '../../src/accounts/sign-in.ts'
import { migrate } from '../../src/db/migrate.ts'
import { MIGRATIONS } from '../../src/db/migrations.gen.ts'
import { databaseFile, inTransaction, openWritable } from '../../src/db/open.ts'
import { secureRandom } from '../../src/lib/random.ts'
import { START, testApp } from '../support/app.ts'
import { Visitor } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'
import { temporaryFolderInMemory } from '../support/folder.ts'
import { codeOf } from '../support/totp.ts'

const ACCOUNTS = 1000
const AT_ONCE = 25
/** Each tenth one has two-factor sign-in, and each twentieth uses a recovery code. */
const hasFactor = (n: number) => n % 10 === 0
const usesRecovery = (n: number) => n % 20 === 0
const isUnknown = (n: number) => n % 20 < 10
const RECOVERY_CODE = 'ABCDEFGHJK'
/** The last migration without people. */
const BEFORE_PEOPLE = MIGRATIONS.findIndex(({ name }) => name.endsWith('_people'))
const LEAST_COST = { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 } as const

interface OldAccount {
  email: string
  password: string
  key: string
  /** Of a session. */
  token: string
  /** Names a browser that has signed in before. */
  device: string
  /** The key of the app for codes. */
  totp: string | undefined
}

/** A folder of a version in which an account was one person. */
function fillFolder(dataDir: string): OldAccount[] {
  const hasher = new SecretHasher(readSecretKey(dataDir, { fresh: true }))
  using db = openWritable(databaseFile(dataDir))
  migrate(db, MIGRATIONS.slice(0, BEFORE_PEOPLE))
  const addAccount = db.prepare(
    `INSERT INTO accounts (id, email, plan, created_at, password_hash, password_changed_at,
       is_owner, totp_secret, totp_enabled_at) VALUES (?1, ?2, 'free', ?3, ?4, ?3, ?5, ?6, ?7)`,
  )
  const addKey = db.prepare(
    `INSERT INTO api_keys (account_id, hash, last_four, created_at) VALUES (?, ?, ?, ?)`,
  )
  const addSession = db.prepare(
    `INSERT INTO sessions (hash, account_id, created_at, seen_at, address, agent)
     VALUES (?1, ?2, ?3, ?3, '192.0.2.1', 'Test')`,
  )
  const addCode = db.prepare('INSERT INTO recovery_codes (account_id, hash) VALUES (?, ?)')
  const addOne = (n: number): OldAccount => {
    const id = n + 1
    const email = `Person-${n}@Example.com`
    const password = `seven purple otters ${n}`
    const secret = hasFactor(n) ? newTotpSecret(secureRandom) : undefined
    const sealed = secret && sealSecret({ hasher, random: secureRandom }, id, secret)
    const passwordHash = Bun.password.hashSync(password, LEAST_COST)
    const isOwner = n === 0 ? 1 : 0
    addAccount.run(id, email, START, passwordHash, isOwner, sealed ?? null, secret ? START : null)
    const key = newApiKey(secureRandom)
    addKey.run(id, hasher.hash('api-key', key), key.slice(-4), START)
    const token = newToken(secureRandom)
    addSession.run(hasher.hash('session', token), id, START)
    if (secret) addCode.run(id, hasher.hash('recovery-code', RECOVERY_CODE))
    const totp = secret && describeSecret(secret, { issuer: 'x', email }).key
    const device = newDeviceToken(hasher, secureRandom, id)
    return { email, password, key, token, device, totp }
  }
  return inTransaction(db, () => Array.from({ length: ACCOUNTS }, (_, n) => addOne(n)))
}

test(`after the upgrade, ${ACCOUNTS} accounts have their keys, sessions and sign-ins`, async () => {
  using folder = temporaryFolderInMemory()
  const accounts = fillFolder(folder.path)
  await using app = await testApp({ dataDir: folder.path })
  const signIn = async (n: number, old: OldAccount) => {
    const { email, password, key, token, device, totp } = old
    const from = `10.1.${n >> 8}.${n & 255}`
    expect((await app.call('GET', '/api/list', { key, from })).status).toBe(200)
    const before = new Visitor(app, { from })
    before.cookies.set('hopcode', token)
    expect((await before.get('/app/account')).text).toContain(email)

    const visitor = new Visitor(app, { from })
    // These have a queue of their own: in each, a sign-in takes 100 ms.
    if (!isUnknown(n)) visitor.cookies.set('hopcode-known', device)
    let seen = await visitor.signIn(email.toLowerCase(), password)
    if (totp) {
      expect(seen.location).toBe('/app/sign-in/code')
      const code = usesRecovery(n) ? RECOVERY_CODE : codeOf(totp, app.now())
      seen = await visitor.post('/app/sign-in/code', { code })
    }
    expect([email, seen.status, seen.location]).toEqual([email, 303, '/app/links'])
  }
  for (let at = 0; at < ACCOUNTS; at += AT_ONCE) {
    const some = accounts.slice(at, at + AT_ONCE)
    await Promise.all(some.map((account, n) => signIn(at + n, account)))
  }
  const eve = new Visitor(app, { from: '10.2.0.1' })
  expect((await eve.signIn('person-1@example.com', 'seven purple otters 2')).status).toBe(401)
  const owner = new Visitor(app, { from: '10.2.0.2' })
  owner.cookies.set('hopcode', accounts[0]?.token ?? '')
  expect((await owner.get('/app/service/accounts')).status).toBe(200)
  const other = new Visitor(app, { from: '10.2.0.3' })
  other.cookies.set('hopcode', accounts[1]?.token ?? '')
  expect((await other.get('/app/service/accounts')).status).toBe(404)
  expect(problemsOf(app)).toEqual([])
}, 240_000)
