import { expect } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../support/app.ts'
import { Service } from '../support/binary.ts'
import { joinFrom, newFolders, refusal, run } from '../support/cluster.ts'
import { firstDifference } from '../support/database.ts'
import { PostgresServer } from '../support/postgres.ts'
import { shared } from '../support/shared.ts'
import { testWith } from '../support/tools.ts'

/** Domains on the hosts of a cluster. */

const postgres = shared(() => PostgresServer.start())

testWith('postgres')(
  'a domain answers on each host of a cluster when the command returns',
  async () => {
    using folders = await newFolders(await postgres())
    const hosts = ['a', 'b', 'c'].map((name) => folders.settings(name))
    const [first = {}, ...others] = hosts
    await run('cluster init', first)
    const created = await run('account create --email a@example.com --plan free --json', first)
    const key = JSON.parse(created).api_key
    for (const other of others) await joinFrom(first, other)
    await using services = new AsyncDisposableStack()
    const running: Service[] = []
    // The databases are compared at rest: a stopping host hands in details that others may miss.
    const quiet = { VISIT_DETAILS: 'off' }
    for (const host of hosts) running.push(services.use(await Service.start({ ...host, ...quiet })))
    const last = running[2] as Service
    const url = 'https://example.com/landing'
    const code = await last.shorten(key, url)
    const statuses = (host: string) =>
      Promise.all(
        running.map(async (one) => (await one.fetch(`/${code}`, { headers: { host } })).status),
      )
    expect(await statuses('go.example')).toEqual([302, 302, 302])
    expect(await run('domain add go.example --for all', first)).toStartWith('go.example is added.')
    expect(await statuses('go.example')).toEqual([404, 404, 404])
    const json = { domain: 'go.example', domain_aliases: { 'go.example': ['Our-Menu'] } }
    const patched = await last.fetch(`/api/links/${code}`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(json),
    })
    expect(patched.status).toBe(200)
    expect(await statuses('go.example')).toEqual([302, 302, 302])
    await run('domain set go.example --root-url https://brand.example/', others[0] ?? {})
    const root = await last.fetch('/', { headers: { host: 'go.example' } })
    expect(root.headers.get('location')).toBe('https://brand.example/')
    const file = join(folders.folder.path, 'apple.json')
    const apps = JSON.stringify({ webcredentials: { apps: ['ABCDE12345.com.example.app'] } })
    await Bun.write(file, apps)
    for (const host of ['go.example', 'hop.test']) {
      await run(`domain set ${host} --apple ${file}`, first)
      const answers = running.map(async (one) => {
        const path = '/.well-known/apple-app-site-association'
        return (await one.fetch(path, { headers: { host } })).text()
      })
      expect(await Promise.all(answers)).toEqual([apps, apps, apps])
    }
    expect(await refusal(`domain set go.example --android ${file}`, first)).toContain(
      'assetlinks.json',
    )
    expect(await refusal('domain remove go.example', first)).toContain(
      '1 link and 1 alias use go.example: --move-links gives them the primary domain',
    )
    const inCapitals = running.map(async (one) => {
      const { status } = await one.fetch('/OUR-MENU', { headers: { host: 'go.example' } })
      return status
    })
    expect(await Promise.all(inCapitals)).toEqual([302, 302, 302])
    await run('domain remove go.example --move-links', first)
    expect(await statuses('go.example')).toEqual([302, 302, 302])
    expect(await run('domain list', first)).toContain('No domains')
    // Hits still on their way to a host would differ, too.
    for (const one of running) {
      await eventually('all hits are counted', async () => (await one.hitCount(code)) === 12)
    }
    await services.disposeAsync()
    const [one = '', ...files] = hosts.map(({ DATA_DIR = '' }) => join(DATA_DIR, 'hopcode.db'))
    expect(files.map((file) => firstDifference(one, file))).toEqual([undefined, undefined])
  },
)
