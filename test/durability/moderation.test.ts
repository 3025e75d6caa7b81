import { expect, test } from 'bun:test'
import { command, makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/** `hopcode link` beside a running service and without one. */

const REASON = 'Phishing, reported on 1 March'

test('hopcode link disable stops a link of a running service, and outlives its restart', async () => {
  using folder = temporaryFolder()
  const env = { DATA_DIR: folder.path, ANONYMOUS_READS_PER_MINUTE: '0' }
  const key = await makeAccount(env)
  let code = ''
  {
    await using service = await Service.start(env)
    code = await service.shorten(key, 'https://phish.example/login')
    const statusOf = async () => (await service.fetch(`/${code}`)).status
    expect(await statusOf()).toBe(302)
    const disabled = await command(['link', 'disable', code, '--reason', REASON], env)
    expect([disabled.code, disabled.err]).toEqual([0, ''])
    expect(await statusOf()).toBe(410)
    await service.end('SIGTERM')
  }
  const listed = await command(['link', 'disabled', '--json'], env)
  expect(JSON.parse(listed.out)).toMatchObject({ code, reason: REASON })
  {
    await using service = await Service.start(env)
    const answer = await service.fetch(`/${code}`)
    expect([answer.status, await answer.json()]).toEqual([410, { error: `Link disabled: ${code}` }])
    await service.end('SIGTERM')
  }
  const unknown = await command(['link', 'disable', 'NOBODYS1', '--reason', REASON], env)
  expect([unknown.code, unknown.err]).toEqual([1, 'hopcode: no link has the code NOBODYS1\n'])
  const enabled = await command(['link', 'enable', code], env)
  expect([enabled.code, enabled.out]).toEqual([0, `${code} is enabled.\n`])
  await using service = await Service.start(env)
  expect((await service.fetch(`/${code}`)).status).toBe(302)
})
