import { expect } from 'bun:test'
import { PostgresServer } from './postgres.ts'
import { testWith } from './tools.ts'

testWith('postgres')(
  'a private PostgreSQL keeps committed rows across kill -9, and asks for its password',
  async () => {
    await using postgres = await PostgresServer.start()
    const database = await postgres.createDatabase()
    await postgres.run(async (sql) => {
      await sql`CREATE TABLE kept (id INT)`
      await sql`INSERT INTO kept VALUES (1)`
    }, database)
    await postgres.kill()
    expect(await postgres.run((sql) => sql`SELECT 1`).catch(() => 'refused')).toBe('refused')
    await postgres.restart()
    const rows = await postgres.run((sql) => sql`SELECT id FROM kept`, database)
    expect([...rows]).toEqual([{ id: 1 }])
    const url = postgres.url().replace(/:[0-9a-f]+@/, ':wrong@')
    const sql = new Bun.SQL(url, { max: 1, connectionTimeout: 5 })
    expect(await sql`SELECT 1`.catch((error: Error) => error.message)).toContain('password')
  },
)
