import { expect, test } from 'bun:test'
import { JSON_TYPE, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import { describeApi } from '../support/openapi.ts'
import { rawRequest } from '../support/raw-http.ts'

/** What the published description promises of every operation, whatever is asked of it. */

const DEEP = 20_000
const BODIES: readonly string[] = [
  '[',
  '{"url":',
  'nul',
  '\u0000',
  '"',
  '{"url":1e999}',
  '{"url":"\\ud800"}',
  '[[[]]]',
  '-0',
  '{"__proto__":{"url":"https://example.com"}}',
  '{"constructor":null}',
  '\ufeff{}',
  '{}{}',
  '{"url":"x","url":"https://example.com/2"}',
  '{"url":["https://example.com"]}',
  "{'url':1}",
  '{"urls":{"length":1,"0":"https://example.com"}}',
  '{"code":{"toUpperCase":1}}',
  'NaN',
  `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`,
  `{"urls":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`,
]

test('no body, however it is made, is a failure of the service', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const api = await describeApi(app)
  const json = [...api.operations].filter(([, { requestBody }]) => requestBody?.content[JSON_TYPE])
  const names = json.map(([name]) => name).filter((name) => name.startsWith('POST '))
  for (const name of names) {
    for (const raw of BODIES) {
      const headers = { 'content-type': JSON_TYPE }
      const path = name.slice('POST '.length)
      const answer = await app.call('POST', path, { key: 'enterprise', raw, headers })
      expect(api.faultsOf(name, answer)).toEqual([])
      const isTaken = raw.includes('https://example.com/2') && path === '/api/shorten'
      expect([name, raw.slice(0, 60), answer.status]).toEqual([
        name,
        raw.slice(0, 60),
        isTaken ? 201 : 400,
      ])
    }
  }
})

const PATHS: readonly string[] = [
  '/%',
  '/%zz',
  '/%ff',
  '/%00',
  '/%E0%A4%A',
  '/..%2f..%2fetc%2fpasswd',
  '/%2e%2e',
  '//',
  '/ABCDEF/',
  '/api/lookup/%',
  '/api/lookup/%ff',
  '/api/lookup/',
  '/api/lookup//ABCDEF',
  '/api/lookup/A%2FB',
  '/api/qr/%',
  '/qr/%ff',
  '/qr/',
  '/cdn/qr/%',
  '/cdn/qr/..%2f..%2fhopcode.db',
  '/cdn/qr/.png',
  '/cdn/qr/%2e%2e%2f%2e%2e%2fsecret.key.png',
  '/api',
  '/api/',
  '/api/nothing',
  '/__proto__',
  '/api/qr/ABCDEF?size=64&size=65',
  '/api/qr/ABCDEF?size[]=64',
  '/api/qr/ABCDEF?format=%ff',
  '/api/list?limit=1&limit=2',
  '/api/list?search=%',
  '/api/list?search=%ff',
  '/api/list?=&&=&',
  '/api/list?__proto__=1',
  '/api/list?search=%00',
  '/api/list?search=a&search=b',
  '/api/list??',
  `/${'A'.repeat(8000)}`,
  `/api/lookup/${'%41'.repeat(2000)}`,
  `/api/list?search=${'a'.repeat(8000)}`,
]

test('no path or query, however it is written, is a failure of the service', async () => {
  await using app = await testApp({ env: UNLIMITED })
  await app.claim('ABCDEF', 'https://example.com/', 'enterprise')
  for (const path of PATHS) {
    const head = [`GET ${path} HTTP/1.1`, `X-API-Key: ${app.key('enterprise')}`]
    const { status, headers, text } = await rawRequest(app.url, head)
    expect([path.slice(0, 60), [200, 302, 400, 404].includes(status) ? '' : status]).toEqual([
      path.slice(0, 60),
      '',
    ])
    if (status < 400) continue
    expect([path.slice(0, 60), headers.get('content-type')]).toEqual([
      path.slice(0, 60),
      expect.stringMatching(/^application\/json\b/),
    ])
    expect(Object.keys(JSON.parse(text))).toEqual(['error'])
    const id = headers.get('x-request-id')
    expect({ path, id }).toEqual({ path, id: expect.stringMatching(/./) })
  }
  expect(app.log.filter((line) => line.includes('"error"'))).toEqual([])
})
