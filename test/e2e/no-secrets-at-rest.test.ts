import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { JournalFile } from '../../src/hot/journal-file.ts'
import { command, makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { Visitor } from '../support/dashboard.ts'
import { ENDPOINTS, pathOf } from '../support/endpoints.ts'
import { temporaryFolder } from '../support/folder.ts'
import { filesUnder, findSecrets, type Secrets } from '../support/secrets.ts'

/**
 * Every endpoint and the dashboard are used, with the log as talkative as it gets; then all that
 * the program has written is searched, byte by byte, for what its owner alone must know.
 */

/** Holds the key of all hashes, and is named as such wherever backups are spoken of. */
const KEY_FILE = 'secret.key'
/** Small, because all of it is searched. */
const JOURNAL_ENTRIES = 4096
const PASSWORD = 'seven purple otters at rest'
const EMAIL = 'owner@example.com'

const tokenIn = (text: string) => /\/app\/\w+\/([\w-]{43})/.exec(text)?.[1] ?? ''

/** The owner's account by the link that was printed, a wrong sign-in, a right one, a reset. */
async function useDashboard(service: Service, env: Settings, secrets: Secrets): Promise<void> {
  const link = await command(['account', 'setup-link', '--json'], env)
  const setup = tokenIn(link.out)
  secrets.set('the set-up token', setup)
  const browser = new Visitor(service)
  const { text } = await browser.post(`/app/setup/${setup}`, { email: EMAIL, password: PASSWORD })
  secrets.set('the password', PASSWORD)
  secrets.set('the owner’s API key', /value="(hop_\w+)"/.exec(text)?.[1] ?? '')
  const wrong = 'nine green herons at rest'
  secrets.set('a wrong password', wrong)
  const again = new Visitor(service)
  for (const password of [wrong, PASSWORD]) await again.signIn(EMAIL, password)
  expect((await again.get('/app/account')).text).toContain(EMAIL)
  for (const [i, value] of [browser, again].flatMap(({ cookies }) => [...cookies]).entries()) {
    secrets.set(`cookie ${i} ${value[0]}`, value[1])
  }
  const reset = await command(['account', 'reset-password', '--email', EMAIL, '--json'], env)
  secrets.set('the reset token', tokenIn(reset.out))
  await again.get(`/app/reset/${tokenIn(reset.out)}`)
  await again.get(`/app//reset/${tokenIn(reset.out)}?x=1`)
}

/** Every endpoint as it should be used, and as it should not. */
async function useApi(service: Service, key: string, secrets: Secrets): Promise<void> {
  const keep = async (name: string, response: Response) => {
    const answer = (await response.json()) as { code: string; passcode: string }
    secrets.set(name, answer.passcode)
    return answer
  }
  const url = 'https://example.com/at-rest'
  const made = await keep('a passcode', await service.post('/api/shorten', key, { url }))
  await keep('another', await service.post('/api/reserve', key, { code: 'ATREST1' }))
  const urls = [`${url}/1`, 'no url']
  const bulk = await service.post('/api/bulk-shorten', key, { urls })
  const { results } = (await bulk.json()) as { results: { passcode: string }[] }
  secrets.set('a passcode of a bulk', results[0]?.passcode ?? '')
  const { code, passcode } = made
  const wrong = passcode.split('').reverse().join('')
  secrets.set('a wrong passcode', wrong)
  const wrongKey = key.split('').reverse().join('')
  secrets.set('a wrong API key', wrongKey)
  for (const endpoint of ENDPOINTS) {
    const path = pathOf(endpoint, code)
    for (const apiKey of [key, wrongKey]) {
      for (const body of [
        { code, passcode: wrong, url },
        { code, passcode, url: 7 },
        { passcode },
      ]) {
        if (endpoint.method === 'POST') await service.post(path, apiKey, body)
        else await service.fetch(path, { headers: { 'x-api-key': apiKey } })
      }
      const half = `{"code":"${code}","passcode":"${passcode}`
      const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' }
      await service.fetch(path, { method: 'POST', headers, body: half })
    }
  }
  await service.post('/api/update', key, { code, passcode, url: `${url}/2` })
  await service.fetch(`/${code}`)
  await service.post('/api/delete', key, { code, passcode })
}

test('no API key, passcode, password, session or one-time token is in any file or log', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  const dataDir = join(folder.path, 'data')
  const env = {
    ...unlimited(dataDir),
    LOG_LEVEL: 'debug',
    LOG_REQUESTS: 'all',
  }
  const secrets: Secrets = new Map()
  const key = await makeAccount(env)
  secrets.set('an API key', key)
  JournalFile.open(join(dataDir, 'hits.journal'), JOURNAL_ENTRIES).close()
  const service = await Service.start(env)
  await useApi(service, key, secrets)
  await useDashboard(service, env, secrets)
  const email = 'enterprise@example.com'
  const rotated = await command(['key', 'rotate', '--email', email, '--json'], env)
  secrets.set('a rotated API key', JSON.parse(rotated.out).api_key)
  await command(['backup', join(elsewhere.path, 'backup.hopcode')], env)
  // While the write-ahead log and the journal hold what is not in the database yet.
  const serving = filesUnder(dataDir)
  expect([...serving.keys()]).toContain('hopcode.db-wal')
  await service.end('SIGTERM')
  const logs = Buffer.from(await service.errors)
  expect(logs.toString()).toContain('"route":"/:code"')

  const hashKey = readFileSync(join(dataDir, KEY_FILE), 'utf8').trim()
  const packed = readFileSync(join(elsewhere.path, 'backup.hopcode'))
  const backup = Buffer.from(Bun.zstdDecompressSync(packed))
  expect(backup.includes(hashKey)).toBe(true)
  const places = new Map<string, Uint8Array>([
    ...[...serving].map(([name, bytes]) => [`${name} while serving`, bytes] as const),
    ...[...filesUnder(dataDir)].filter(([name]) => name !== KEY_FILE),
    ['the log', logs],
    ['the backup', backup],
  ])
  places.delete(`${KEY_FILE} while serving`)
  for (const [name, secret] of secrets) expect([name, secret.length >= 20]).toEqual([name, true])
  expect(findSecrets(secrets, places)).toEqual([])
  // Only a backup holds the key of the hashes beside them.
  const withKey = findSecrets(new Map([['the hash key', hashKey]]), places)
  expect(withKey).toEqual(['the hash key in the backup, plain'])

  // The same search sees each secret, wherever it is put.
  const database = readFileSync(join(dataDir, 'hopcode.db'))
  for (const [name, secret] of secrets) {
    const planted = Buffer.concat([database, Buffer.from(secret)])
    expect(findSecrets(secrets, new Map([['it', planted]]))).toContain(`${name} in it, plain`)
  }
})
