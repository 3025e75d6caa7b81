import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestApp } from '../support/app.ts'
import { command, makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { appWithDomains, GO, outcome, PRIMARY } from '../support/domains.ts'
import { temporaryFolder } from '../support/folder.ts'

/** Imports of files whose links are on domains of the service. */

const CSV = [
  'Short URL,Long URL',
  'https://go.test/Spring26,https://example.com/1',
  'https://go.test/menu,https://example.com/2',
  'https://hop.test/menu,https://example.com/3',
  'https://old.test/menu,https://example.com/4',
].join('\n')

test('the command keeps configured domains and names the others', async () => {
  using folder = temporaryFolder()
  const settings = { BASE_URL: 'http://hop.test', IMPORT_ALIASES: 'all' }
  const env = { ...unlimited(join(folder.path, 'data')), ...settings }
  const file = join(folder.path, 'links.csv')
  writeFileSync(file, CSV)
  const key = await makeAccount(env)
  const run = (args: string, more: Settings = {}) => command(args.split(' '), { ...env, ...more })
  await using service = await Service.start(env)
  expect((await run('domain add go.test --for all')).code).toBe(0)
  const remote = { HOPCODE_API_KEY: key, HOPCODE_URL: service.url }
  const results: string[] = []
  for (const [from, account] of [
    [remote, ''],
    [{}, ' --account enterprise@example.com'],
  ] as const) {
    const { code, out } = await run(`import ${file} --dry-run${account}`, from)
    results.push(out)
    expect([code, out]).toEqual([1, expect.stringContaining('old.test is not a domain')])
    expect(out).toMatch(/1 {2}refused: its domain is not a domain of this service/)
  }
  expect(results[0]).toBe(results[1] as string)
  const imported = await run(`import ${file} --account enterprise@example.com`)
  expect([imported.code, imported.err]).toEqual([1, ''])
  const lead = async (host: string, path: string) =>
    (await service.fetch(path, { headers: { host } })).headers.get('location')
  expect([
    await lead('go.test', '/spring26'),
    await lead('hop.test', '/Spring26'),
    await lead('go.test', '/menu'),
    await lead('hop.test', '/menu'),
  ]).toEqual([
    'https://example.com/1',
    'https://example.com/1',
    'https://example.com/2',
    'https://example.com/3',
  ])
  const again = await run(`import ${file} --account enterprise@example.com`)
  expect(again.out).toMatch(/3 {2}exists already/)
  writeFileSync(file, CSV.replaceAll('/menu', '/lunch'))
  const named = await run(`import ${file} --domain old.test --account enterprise@example.com`)
  expect(named.out).toMatch(/1 {2}created/)
  expect(await lead('hop.test', '/lunch')).toBe('https://example.com/4')
}, 60_000)

const send = (app: TestApp, raw: string, query = '') =>
  app.call('POST', `/api/import${query}`, {
    key: 'free',
    raw,
    headers: { 'content-type': 'application/x-ndjson' },
  })

test('the result of a new link names its aliases that are in use, with their domains', async () => {
  await using app = await appWithDomains()
  const url = 'https://example.com/any'
  const aliases = { domain_aliases: { [GO]: ['menu'], [PRIMARY]: ['here'] } }
  await send(app, JSON.stringify({ url, ...aliases }))
  const line = JSON.stringify({ url, code: 'CCCCCC', aliases: ['new'], ...aliases })
  const left = [`//${GO}/menu`, 'here'].map(
    (name) => `The alias ${name} is in use and was left out`,
  )
  for (const query of ['?dry_run=true', '']) {
    const { body } = await send(app, line, query)
    expect(body.results).toEqual([
      { outcome: 'created_alias', code: 'CCCCCC', message: left.join('. ') },
    ])
  }
})

test('an export has aliases that match in any case, also on other domains', async () => {
  await using first = await appWithDomains()
  const line = {
    url: 'https://example.com/any',
    code: 'CCCCCC',
    aliases_any_case: ['here'],
    domain_aliases: { [GO]: ['Exact'] },
    domain_aliases_any_case: { [GO]: ['Menu'], [PRIMARY]: ['There'] },
  }
  const { body } = await send(first, JSON.stringify(line))
  expect(body).toMatchObject({ results: [{ outcome: 'created_alias' }] })
  const exported = await first.call('GET', '/api/export', { key: 'free' })
  await using second = await appWithDomains()
  await send(second, exported.text)
  for (const app of [first, second]) {
    expect(await outcome(app, GO, '/MENU')).toEqual([302, line.url])
    expect(await outcome(app, GO, '/Exact')).toEqual([302, line.url])
    expect((await outcome(app, GO, '/exact'))[0]).toBe(404)
    expect(await outcome(app, PRIMARY, '/tHERE')).toEqual([302, line.url])
    expect(await outcome(app, PRIMARY, '/HERE')).toEqual([302, line.url])
  }
})
