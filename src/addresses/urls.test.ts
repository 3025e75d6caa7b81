import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { isOnPrimary, NO_DOMAIN } from './address.ts'
import { domains } from './domains.ts'
import { DomainMap } from './map.ts'
import { PublicUrls } from './urls.ts'

const FIELDS = { access: 'all', accountId: null, codes: 'own', rootUrl: null, notFoundUrl: null }

/** A service at `BASE_URL` with some domains. The map does not learn that one was added. */
function serviceAt(baseUrl: string, hosts: readonly string[]) {
  const db = openWritable(join(temporaryFolderInMemory().path, 'hopcode.db'))
  migrate(db)
  const { add } = operationsOn(db, domains)
  const author = { accountId: 0, by: 'operator', now: 0 }
  const addHost = (host: string) => add({ ...FIELDS, host, author } as Parameters<typeof add>[0])
  for (const host of hosts) addHost(host)
  const map = new DomainMap(db, { all: 0 }, { baseUrl, rootUrl: undefined, notFoundUrl: undefined })
  return { addHost, urls: new PublicUrls({ baseUrl, cdnUrl: `${baseUrl}/cdn`, domains: map }) }
}

test('the primary domain has one id, however it is named, and prints as a path alone', () => {
  const { urls } = serviceAt('http://hop.test:8080', ['go.example'])
  for (const text of ['menu', '//hop.test/menu']) {
    const address = urls.parse(text)
    expect([isOnPrimary(address), urls.textOf(address)]).toEqual([true, 'menu'])
    expect(urls.alias(address)).toBe('http://hop.test:8080/menu')
  }
  expect([null, '', 'hop.test'].map(urls.idOf)).toEqual([0, 0, 0])
  expect(urls.namedHost(0)).toBeNull()
})

test('an address on another domain is read and printed as one text; an unknown host is none', () => {
  const { urls } = serviceAt('http://hop.test', ['go.example', 'old.example'])
  for (const text of ['//go.example/menu', '//old.example/a/b/ü']) {
    expect(urls.textOf(urls.parse(text))).toBe(text)
  }
  expect(urls.alias(urls.parse('//go.example/a b/c'))).toBe('http://go.example/a%20b/c')
  expect(urls.parse('//other.example/menu')).toEqual({ domainId: NO_DOMAIN, path: 'menu' })
})

test('a link on a domain that was added a moment ago is printed with it', () => {
  const { urls, addHost } = serviceAt('http://hop.test', ['go.example'])
  const code = 'SPRING26' as Parameters<typeof urls.short>[0]['code']
  expect(urls.short({ code, domainId: urls.idOf('go.example') })).toBe('http://go.example/SPRING26')
  addHost('new.example')
  expect(urls.short({ code, domainId: 2 })).toBe('http://new.example/SPRING26')
})

test('links stay on a domain whose host has become that of BASE_URL', () => {
  const { urls } = serviceAt('http://go.example:8080', ['go.example'])
  expect(urls.namedHost(1)).toBe('go.example')
  expect(isOnPrimary(urls.parse('//go.example/menu'))).toBe(true)
})
