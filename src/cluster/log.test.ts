import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import type { SQL } from 'bun'
import { eventually } from '../../test/support/app.ts'
import { PostgresServer } from '../../test/support/postgres.ts'
import { shared } from '../../test/support/shared.ts'
import { TcpProxy } from '../../test/support/tcp-proxy.ts'
import { testWith } from '../../test/support/tools.ts'
import { HostInUse, PostgresLog } from './log.ts'
import type { Entry } from './log-reader.ts'
import { beginLog, createTables, FIRST_CHAIN } from './schema.ts'

const testLog = testWith('postgres')
const postgres = shared(() => PostgresServer.start({ isVolatile: true }))

/** The tables of a cluster with one host that has applied everything. */
async function newLog() {
  const server = await postgres()
  const database = await server.createDatabase()
  const run = <Result>(work: (sql: SQL) => Promise<Result>) => server.run(work, database)
  await run((sql) =>
    sql.begin(async (tx) => {
      await createTables(tx)
      await beginLog(tx, { cluster: 'c', seq: 0, chain: FIRST_CHAIN })
    }),
  )
  await run(
    (sql) => sql`INSERT INTO hopcode.hosts (id, name, address, program, version, applied, seen)
      VALUES ('host', '', '', '', 1, 1000000, now())`,
  )
  const log = new PostgresLog({ url: server.url(database), host: 'host', boot: 'one' })
  return { server, database, log, run, [Symbol.asyncDispose]: () => log.close() }
}

/** Entries that are `hours` old. */
const fill = (first: number, last: number, bytes: number, hours: number) => (sql: SQL) =>
  sql`INSERT INTO hopcode.log (seq, host, batch, at, version, chain, calls)
    SELECT n, 'other', n::text, now() - ${hours} * interval '1 hour', 1, '',
      decode(repeat('00', ${bytes}), 'hex')
    FROM generate_series(${first}::int, ${last}::int) AS n`

const REPORT = { applied: 0, version: 1, problem: null, digests: [] }

testLog('one process at a time is a host, until it leaves or is silent for the lease', async () => {
  await using cluster = await newLog()
  const { log: one, run, server, database } = cluster
  const url = server.url(database)
  const two = new PostgresLog({ url, host: 'host', boot: 'two' })
  await one.report(REPORT)
  await one.report(REPORT)
  await expect(two.report(REPORT)).rejects.toBeInstanceOf(HostInUse)
  await two.leave()
  await expect(two.report(REPORT)).rejects.toBeInstanceOf(HostInUse)
  await one.leave()
  await two.report(REPORT)
  await expect(one.report(REPORT)).rejects.toBeInstanceOf(HostInUse)
  await run((sql) => sql`UPDATE hopcode.hosts SET seen = now() - interval '3 seconds'`)
  await one.report(REPORT)
  await expect(two.report(REPORT)).rejects.toBeInstanceOf(HostInUse)
  await two.close()
})

testLog('tables of an earlier release are upgraded', async () => {
  await using cluster = await newLog()
  const { log, run } = cluster
  await run((sql) =>
    sql.unsafe(`DROP TABLE hopcode.digests; ALTER TABLE hopcode.hosts DROP boot;
      UPDATE hopcode.cluster SET format = 1`),
  )
  const digests = [{ seq: 1, digest: 'x' }]
  await expect(log.report({ ...REPORT, digests })).rejects.toThrow('PostgreSQL: ')
  await run((sql) => sql.begin((tx) => createTables(tx)))
  expect(await log.report({ ...REPORT, digests })).toMatchObject({ head: 0, splits: [] })
  const [row] = await run((sql) => sql`SELECT count(*) AS count FROM hopcode.digests`)
  expect(Number(row.count)).toBe(1)
})

testLog(
  'entries are pruned in small steps, oldest first, and those of the last hour are kept',
  async () => {
    await using cluster = await newLog()
    const { log, run } = cluster
    await run(fill(1, 2500, 10, 1.1))
    await run(fill(2501, 2600, 10, 0.9))
    const steps: number[] = []
    for (let deleted = -1; deleted !== 0; ) {
      const pruned = await log.prune()
      deleted = pruned.deleted
      steps.push(deleted)
      if (deleted === 0) expect(pruned.entries).toBe(100)
    }
    expect(steps).toEqual([1000, 1000, 500, 0])
  },
)

testLog('one step of pruning deletes a limited amount of bytes', async () => {
  await using cluster = await newLog()
  const { log, run } = cluster
  await run(fill(1, 6, 8 * 1024 * 1024, 2))
  expect([(await log.prune()).deleted, (await log.prune()).deleted]).toEqual([2, 2])
})

testLog('pruning reads a part of the log only, however long it is', async () => {
  await using cluster = await newLog()
  const { log, run } = cluster
  await run(fill(1, 20_000, 10, 0.5))
  const rowsRead = async () => {
    const [row] = await run(
      (sql) => sql`SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) AS rows
        FROM pg_stat_user_tables WHERE relname = 'log'`,
    )
    return Number(row.rows)
  }
  await run((sql) => sql.unsafe('ANALYZE hopcode.log'))
  const before = await rowsRead()
  expect((await log.prune()).deleted).toBe(0)
  // PostgreSQL publishes the numbers of a connection when it ends.
  await log.close()
  await eventually('the numbers are published', async () => (await rowsRead()) > before)
  expect((await rowsRead()) - before).toBeLessThan(2000)
})

testLog('a subscription that PostgreSQL does not confirm is given up, and begun anew', async () => {
  await using cluster = await newLog()
  const { server, database } = cluster
  await using proxy = await TcpProxy.start(server.port)
  const log = new PostgresLog({ url: server.url(database, proxy.port), host: 'host' })
  let confirmed = 0
  const on = { entry: () => confirmed++, applied: () => {} }
  log.subscribe(on)
  await eventually('it is confirmed', () => confirmed === 1)
  log.unsubscribe()
  proxy.holdAfter('LISTEN')
  log.subscribe(on)
  await eventually('it waits', () => proxy.isHolding)
  proxy.abandon()
  proxy.restore()
  await eventually('another one is confirmed', () => {
    log.subscribe(on)
    return confirmed === 2
  })
  await log.close()
})

testLog('the other hosts do not wait for a host that reports a problem', async () => {
  await using cluster = await newLog()
  const { log, server, database } = cluster
  const other = new PostgresLog({ url: server.url(database), host: 'other' })
  let isListening = false
  const applied: number[] = []
  other.subscribe({
    entry: () => {
      isListening = true
    },
    applied: (_, seq) => applied.push(seq),
  })
  await eventually('it listens', () => isListening)
  await log.report({ ...REPORT, problem: 'behind' })
  await log.confirm(1)
  await log.report(REPORT)
  await log.confirm(2)
  await eventually('the last one has arrived', () => applied.includes(2))
  expect(applied).toEqual([2])
  await other.close()
})

testLog('entries are read in pieces, also those that are larger than one', async () => {
  await using cluster = await newLog()
  const { server, database, run } = cluster
  const sizes = [10, 300_000, 20, 30_000, 5_000_000, 40]
  for (const [at, size] of sizes.entries()) {
    const calls = new Uint8Array(randomBytes(size))
    await run(
      (sql) => sql`INSERT INTO hopcode.log (seq, host, batch, version, chain, calls)
        VALUES (${at + 1}, 'other', ${`${at}`}, 1, ${Bun.SHA256.hash(calls)}::bytea, ${calls}::bytea)`,
    )
  }
  await using proxy = await TcpProxy.start(server.port)
  const log = new PostgresLog({ url: server.url(database, proxy.port), host: 'host' })
  const read: Entry[] = []
  let errors = 0
  for (let isAtEnd = false; !isAtEnd; ) {
    // Connections are lost in the middle of entries.
    if (errors < 3) setTimeout(() => proxy.cut(), 5 * errors)
    const entries = await log.readAfter(read.length).catch(() => undefined)
    if (entries) read.push(...entries)
    else errors++
    isAtEnd = entries?.length === 0
  }
  expect(read.map(({ seq, calls }) => [seq, calls.length])).toEqual(
    sizes.map((size, at) => [at + 1, size]),
  )
  for (const { calls, chain } of read) expect(Bun.SHA256.hash(calls)).toEqual(new Uint8Array(chain))
  await log.close()
})

testLog('a line of 1 Mbit/s and one of 300 ms read entries without an error', async () => {
  await using cluster = await newLog()
  const { server, database, run } = cluster
  await run(fill(1, 3, 100_000, 0))
  await using proxy = await TcpProxy.start(server.port)
  for (const slow of [() => proxy.limit(1_000_000), () => proxy.delay(150)]) {
    slow()
    const log = new PostgresLog({ url: server.url(database, proxy.port), host: 'host' })
    let seq = 0
    for (let next: Entry[] = []; next.length > 0 || seq === 0; seq += next.length) {
      next = await log.readAfter(seq)
    }
    expect(seq).toBe(3)
    await log.close()
    proxy.restore()
  }
})

testLog('PostgreSQL adds no entry after its deadline, and finds one that it added', async () => {
  await using cluster = await newLog()
  const { log, run } = cluster
  await log.head()
  const entry = (batch: string) => ({ batch, version: 1, calls: Buffer.from('[]') })
  const added = await log.append(entry('a'), log.deadlineAfter(60_000))
  expect(added.seq).toBe(1)
  const over = log.deadlineAfter(-1)
  await expect(log.append(entry('b'), over)).rejects.toThrow('too late')
  // Its first answer was lost.
  expect(await log.append(entry('a'), over)).toEqual(added)
  // The deadline passes while another entry is added.
  await run(async (sql) => {
    const deadline = log.deadlineAfter(200)
    let appended: Promise<unknown> | undefined
    await sql.begin(async (tx) => {
      await tx`UPDATE hopcode.cluster SET seq = seq`
      appended = log.append(entry('c'), deadline).catch((error: Error) => error.message)
      await tx`SELECT pg_sleep(0.05 + ${deadline} / 1000 - extract(epoch FROM clock_timestamp()))`
    })
    expect(await appended).toContain('too late')
  })
  expect((await log.head()).head).toBe(1)
})
