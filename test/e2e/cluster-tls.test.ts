import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, makeAccount, Service, type Settings, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PostgresServer } from '../support/postgres.ts'
import { testWith } from '../support/tools.ts'

/** A host of a cluster verifies the certificate of PostgreSQL, and encrypts all connections. */

const NAME = 'localhost'
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** An authority, and a certificate for `NAME` that it has signed. */
function createCertificate(folder: string) {
  const files = {
    authority: join(folder, 'authority.pem'),
    authorityKey: join(folder, 'authority.key'),
    certificate: join(folder, 'server.pem'),
    key: join(folder, 'server.key'),
  }
  const { authority, authorityKey, certificate, key } = files
  const openssl = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['openssl', 'req', '-x509', ...KEY, ...words])
    if (exitCode !== 0) throw new Error(`openssl: ${stderr}`)
  }
  openssl('-keyout', authorityKey, '-out', authority, '-subj', '/CN=authority')
  const signed = ['-CA', authority, '-CAkey', authorityKey, '-addext', `subjectAltName=DNS:${NAME}`]
  openssl('-keyout', key, '-out', certificate, '-subj', `/CN=${NAME}`, ...signed)
  return files
}

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
