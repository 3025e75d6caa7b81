import { expect, test } from 'bun:test'
import { Conversation } from '../../test/support/conversation.ts'
import { ControlServer } from './control-server.ts'

const silent = { error: () => {} }

async function sendHost(host: string) {
  const urls: string[] = []
  const server = new ControlServer((request) => {
    urls.push(request.url)
    return new Response('answered')
  }, silent)
  const response = await fetch(`http://127.0.0.1:${server.port}/ABCDEF`, { headers: { host } })
  const text = await response.text()
  await server.close()
  return { status: response.status, text, urls }
}

test('a Host of 300 characters is answered', async () => {
  const host = `${'a'.repeat(295)}:8080`
  expect(await sendHost(host)).toMatchObject({ status: 200, urls: [`http://${host}/ABCDEF`] })
})

test('a longer Host is refused before it is parsed', async () => {
  const text = '{"error":"Invalid Host: must have at most 300 characters"}'
  for (const host of ['a'.repeat(301), `a${'%CC%81'.repeat(1000)}${'%CC%A3'.repeat(1000)}`]) {
    expect(await sendHost(host)).toEqual({ status: 400, text, urls: [] })
  }
})

test('a request without a Host has its whole path, however many slashes it has', async () => {
  const paths: string[] = []
  const server = new ControlServer(({ url }) => {
    paths.push(new URL(url).pathname)
    return new Response()
  }, silent)
  for (const path of ['/ABCDEFGHIJKL/', '/sale/2026/summer/?u=http://a/b']) {
    using client = await Conversation.open(`http://127.0.0.1:${server.port}`)
    client.send(`GET ${path} HTTP/1.0\r\n\r\n`)
    await client.closed()
  }
  await server.close()
  expect(paths).toEqual(['/ABCDEFGHIJKL/', '/sale/2026/summer/'])
})
