import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { command } from '../support/binary.ts'
import { TestCluster } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { filesUnder, findSecrets, type Secrets } from '../support/secrets.ts'
import { testWith } from '../support/tools.ts'

/**
 * Visitors with unmistakable addresses, browsers, cookies and referrers follow links of a cluster;
 * then all that the service has written and answered is searched for them.
 */

const CANARIES: Secrets = new Map([
  ['an address', '203.0.113.213'],
  ['an IPv6 address', '2001:db8:ca:4a21'],
  ['a User-Agent', 'CanaryBrowser/7.77 (Norwegian Blue)'],
  ['the name of a bot', 'CanaryCrawlerBot-4711'],
  ['a cookie', 'session=canary-cookie-0123456789'],
  ['the path of a referrer', 'canary-diary/of-a-person'],
  ['the query of a referrer', 'secret-canary-search'],
  ['a language', 'nb-NO-x-canary'],
])
const VALUES = [...CANARIES.values()]

testWith('postgres')(
  'no address, browser, cookie or referrer of a visitor is in any file, log, database or answer',
  async () => {
    await using cluster = await TestCluster.start({
      hosts: 2,
      env: () => ({
        LOG_LEVEL: 'debug',
        LOG_REQUESTS: 'all',
        TRUSTED_PROXIES: '127.0.0.1',
        COUNTRY_HEADER: 'CF-IPCountry',
      }),
    })
    const host = cluster.host(0)
    const code = await host.service.shorten(cluster.key, 'https://example.com/')
    const [address = '', ipv6 = '', agent = '', bot = '', cookie = '', path, query, language = ''] =
      VALUES
    const referer = `https://news.example/${path}?q=${query}`
    const headers = { referer, cookie, 'accept-language': language, 'cf-ipcountry': 'NO' }
    for (const [from, userAgent] of [
      [address, agent],
      [`${ipv6}::1`, agent],
      [address, bot],
    ]) {
      const { status } = await host.fetch(`/${code}`, {
        redirect: 'manual',
        headers: { ...headers, 'user-agent': userAgent ?? '', 'x-forwarded-for': from ?? '' },
      })
      expect(status).toBe(302)
    }
    const read = (by: string, at = 0) =>
      cluster
        .host(at)
        .fetch(`/api/links/${code}/visits?by=${by}`, { headers: { 'x-api-key': cluster.key } })
    await eventually('both hosts have the details', async () => {
      const all = await Promise.all([0, 1].map(async (at) => (await read('os', at)).json()))
      return all.every((one) => (one as { known: number }).known === 3)
    })
    const answers: string[] = []
    for (const by of ['referrer', 'country', 'device', 'browser', 'os', 'bot']) {
      answers.push(await (await read(by)).text())
    }
    answers.push(await (await host.fetch('/-/metrics')).text())
    expect(answers.join()).toContain('news.example')
    expect(answers.join()).toContain('Norway')

    using elsewhere = temporaryFolder()
    const backup = join(elsewhere.path, 'backup.hopcode')
    await command(['backup', backup], host.settings)
    const places = new Map<string, Uint8Array>([
      ['the answers', Buffer.from(answers.join('\n'))],
      ['the backup', Bun.zstdDecompressSync(readFileSync(backup))],
    ])
    for (const [at, { dataDir, service }] of cluster.hosts.entries()) {
      for (const [name, bytes] of filesUnder(dataDir)) places.set(`${name} of host ${at}`, bytes)
      const { errors } = service
      await cluster.host(at).stop()
      places.set(`the log of host ${at}`, Buffer.from(await errors))
    }
    for (const [name, bytes] of filesUnder(cluster.postgres.data)) {
      places.set(`PostgreSQL, ${name}`, bytes)
    }
    expect(findSecrets(CANARIES, places)).toEqual([])
    expect(await cluster.difference()).toBeUndefined()

    // The same search sees each of them, wherever it is put.
    for (const [name, text] of CANARIES) {
      const planted = new Map([['it', Buffer.from(`before ${text} after`)]])
      expect(findSecrets(CANARIES, planted)).toContain(`${name} in it, plain`)
    }
  },
)
