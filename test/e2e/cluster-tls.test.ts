import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { createCertificate, CERTIFIED_NAME as NAME } from '../support/certificates.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PostgresServer } from '../support/postgres.ts'
import { testWith } from '../support/tools.ts'

/** A host of a cluster verifies the certificate of PostgreSQL, and encrypts all connections. */

testWith('postgres')(
  'a host verifies the certificate of PostgreSQL, and encrypts every connection',
  async () => {
    using folder = temporaryFolder()
    const files = createCertificate(folder.path)
    await using postgres = await PostgresServer.start({
      isVolatile: true,
      tls: {
        certificate: readFileSync(files.certificate, 'utf8'),
        key: readFileSync(files.key, 'utf8'),
      },
    })
    const database = await postgres.createDatabase()
    const settings = (parameters: string, host = NAME): Settings => {
      const url = new URL(postgres.url(database))
      url.hostname = host
      url.search = parameters
      return Object.assign(unlimited(join(folder.path, 'data')), { CLUSTER_URL: url.href })
    }
    const refusal = async (env: Settings) => {
      const { code, err } = await command(['cluster', 'init'], env)
      expect(code).toBe(1)
      expect(err).not.toContain('postgres://')
      return err
    }
    expect(await refusal(settings('sslmode=verify-full'))).toContain('unable to verify')
    const verified = `sslmode=verify-full&sslrootcert=${files.authority}`
    expect(await refusal(settings(verified, '127.0.0.1'))).toContain('does not match')

    const env = settings(verified)
    expect(await command(['cluster', 'init'], env)).toMatchObject({ code: 0 })
    const key = await makeAccount(env, 'enterprise')
    await using service = await Service.start(env)
    const { status } = await service.post('/api/shorten', key, { url: 'https://example.com/' })
    expect(status).toBe(201)
    const connections = await postgres.run(
      (sql) => sql`
        SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.datname = ${database}`,
    )
    expect(connections.length).toBeGreaterThan(1)
    expect(connections.every((connection: { ssl: boolean }) => connection.ssl)).toBe(true)
  },
  120_000,
)
