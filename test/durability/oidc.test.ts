import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service } from '../support/binary.ts'
import { createCertificate } from '../support/certificates.ts'
import { Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { ANN, START, signInWith } from '../support/oidc.ts'
import { Provider } from '../support/oidc-provider.ts'
import { testWith } from '../support/tools.ts'

/** The program signs in with a provider, and its commands know who has. */

test('sign-in with a provider, its commands, and a restored backup', async () => {
  using folder = temporaryFolder()
  await using provider = new Provider()
  const DATA_DIR = join(folder.path, 'data')
  const { OIDC_CLIENT_ID = '', ...others } = provider.settings
  const without = { DATA_DIR, ...others, OIDC_SIGNUP: 'open', BASE_URL: 'http://hop.test' }
  const env = { ...without, OIDC_CLIENT_ID }
  await makeAccount(env)
  const backup = join(folder.path, 'a.hopcode')
  {
    await using service = await Service.start(env)
    const visitor = new Visitor(service)
    expect((await signInWith(visitor, provider, ANN)).location).toBe('/app/links')
    expect((await command(['backup', backup], env)).code).toBe(0)
    const names = [provider.url, 'https://id.example/realm'] as const
    for (const [from, to] of [names, names.toReversed()]) {
      const { out } = await command(['account', 'issuer', from ?? '', to ?? '', '--json'], env)
      expect(JSON.parse(out)).toEqual({ from, to, renamed: 1 })
    }
    expect((await visitor.get('/app/links')).status).toBe(200)
    const words = ['account', 'disconnect', '--email', ANN.email, '--json']
    const { out } = await command(words, env)
    expect(JSON.parse(out)).toEqual({ email: ANN.email, disconnected: 1 })
    expect((await visitor.get('/app/links')).status).toBe(303)
    expect(await service.end('SIGTERM')).toBe(0)
  }
  expect((await command(['check'], env)).code).toBe(0)
  expect((await command(['restore', backup], env)).code).toBe(0)
  {
    await using service = await Service.start(env)
    const visitor = new Visitor(service)
    expect((await signInWith(visitor, provider, ANN)).location).toBe('/app/links')
    expect(await service.end('SIGTERM')).toBe(0)
  }
  expect((await command(['check'], env)).code).toBe(0)

  const refused = await command(['serve'], without)
  expect(refused.code).not.toBe(0)
  expect(refused.err).toContain('Bad setting: OIDC_CLIENT_ID is missing')
  expect(refused.err.trim()).not.toContain('\n')
})

testWith('openssl')(
  'a provider with a certificate of an own authority needs NODE_EXTRA_CA_CERTS',
  async () => {
    using folder = temporaryFolder()
    const { authority, certificate, key } = createCertificate(folder.path)
    const tls = { cert: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') }
    await using provider = new Provider({ tls })
    const env = { DATA_DIR: join(folder.path, 'data'), ...provider.settings, OIDC_SIGNUP: 'open' }
    await makeAccount(env)
    {
      await using service = await Service.start(env)
      const seen = await new Visitor(service).get(START)
      expect([seen.status, seen.text.includes('is not set up correctly here')]).toEqual([502, true])
      expect(await service.end('SIGTERM')).toBe(0)
      expect(await service.errors).toContain('UNABLE_TO_VERIFY_LEAF_SIGNATURE')
    }
    await using service = await Service.start({ ...env, NODE_EXTRA_CA_CERTS: authority })
    expect((await signInWith(new Visitor(service), provider, ANN)).location).toBe('/app/links')
  },
)
