import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile, inTransaction, openWritable } from '../../src/db/open.ts'
import { forEach, HopcodeClient } from './hopcode-client.ts'
import type { Contender } from './redirect-round.ts'
import { startServer } from './server.ts'
import { hopcode, type Link, WITHOUT_LIMITS } from './variants.ts'

const SETTINGS = { ...WITHOUT_LIMITS, REDIRECT_THREADS: '1', IMPORT_ALIASES: 'all' }
const MILLION = 1_000_000

export const aliasOf = ({ code }: Link): string => `Print-${code.toLowerCase()}`

interface Aliased {
  program: string[]
  dataDir: string
  temporaryPath: string
}

/**
 * The same links by an alias each, by their codes beside a million aliases of other paths, and by
 * their codes with two domains beside that of the service.
 */
export async function aliasContenders(
  service: Contender & { apiKey: string },
  { program, dataDir, temporaryPath }: Aliased,
): Promise<Contender[]> {
  const own = join(temporaryPath, 'aliases')
  const many = join(temporaryPath, 'million-aliases')
  const domains = join(temporaryPath, 'two-domains')
  for (const folder of [own, many]) cpSync(dataDir, folder, { recursive: true })
  const launch = { ...hopcode(program, own, SETTINGS), name: 'aliases' }
  await addAliases({ ...service, launch })
  storeMillion(databaseFile(many))
  const stored = { ...hopcode(program, many, SETTINGS), name: 'million aliases' }
  const contenders: Contender[] = [
    {
      ...service,
      name: 'aliases',
      launch,
      dataDir: own,
      pathOf: (link) => `/${aliasOf(link)}`,
    },
    { ...service, name: 'million aliases', launch: stored, dataDir: many },
  ]
  if (hasDomains(databaseFile(dataDir))) {
    cpSync(dataDir, domains, { recursive: true })
    storeDomains(databaseFile(domains))
    const configured = { ...hopcode(program, domains, SETTINGS), name: 'two domains' }
    contenders.push({ ...service, name: 'two domains', launch: configured, dataDir: domains })
  }
  return contenders
}

/** Whether the commit that made the file, which `compare` chooses, knows domains. */
function hasDomains(file: string): boolean {
  const db = openWritable(file)
  try {
    return db.query("SELECT 1 FROM sqlite_schema WHERE name = 'domains'").get() !== null
  } finally {
    db.close()
  }
}

async function addAliases({ launch, apiKey, links }: Contender & { apiKey: string }) {
  await using server = await startServer(launch)
  const client = new HopcodeClient(server.origin, apiKey)
  await forEach(links, (link) => client.patchLink(link.code, { aliases: [aliasOf(link)] }))
  await server.stop()
}

function storeMillion(file: string): void {
  const db = openWritable(file)
  inTransaction(db, () => {
    db.run(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers
              WHERE n < ${MILLION})
            INSERT INTO aliases (path, link_id) SELECT 'stored-' || n, 1 + n % 100 FROM numbers`)
  })
  db.close()
}

function storeDomains(file: string): void {
  const db = openWritable(file)
  db.run(`INSERT INTO domains (host, access, codes, created_at)
          VALUES ('go.example', 'all', 'own', 0), ('old.example', 'all', 'all', 0)`)
  db.close()
}
