import { expect, test } from 'bun:test'
import { addDomain } from '../../src/addresses/operations.ts'
import { testApp } from '../support/app.ts'
import { OWNER, setUpOwner } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

test('an owner of the service who joins an account gives it no rights of an owner', async () => {
  await using app = await testApp()
  const { owner, key } = await setUpOwner(app)
  const member = await makeMember(app, 'free@example.com')
  await app.claim('AAAAAA')
  await addDomain(app.administration, { host: 'brand.example' })
  const form = { from: '/app/account/members' }
  const seen = await member.post(
    '/app/account/members/invite',
    { email: OWNER, role: 'admin' },
    form,
  )
  const path = /value="[^"]*(\/app\/join\/[\w-]+)"/.exec(seen.text)?.[1] ?? ''
  app.advance(1)
  await owner.post(path, {})
  expect((await member.get('/app/account/members')).text).toContain(OWNER)
  const change = (json: object) => app.call('PATCH', '/api/links/AAAAAA', { key: 'free', json })
  expect((await change({ aliases: ['menu'] })).status).toBe(403)
  expect((await change({ domain: 'brand.example' })).status).toBe(400)
  const own = { url: 'https://example.com/own', aliases: ['menu'], domain: 'brand.example' }
  expect((await app.call('POST', '/api/shorten', { key, json: own })).status).toBe(201)
})
