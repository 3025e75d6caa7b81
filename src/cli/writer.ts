import type { Database } from 'bun:sqlite'
import { applyWithoutService, submitCommand } from '../cluster/command.ts'
import { hostIdOf } from '../cluster/host-id.ts'
import { findLogPosition } from '../cluster/position.ts'
import { requireSameMode } from '../cluster/setup.ts'
import { inTransaction } from '../db/open.ts'
import { type Call, type Caller, functionOf } from '../lib/thread.ts'
import { loggedWrites, type SharedWrites, sharedWrites } from '../writes.ts'

/** Writes the changes of a command. */
export type CommandWriter = Caller<SharedWrites>

interface CommandFolder {
  db: Database
  dataDir: string
  clusterUrl: string | undefined
}

/**
 * On a host of a cluster, changes go through its log. First applies the log if no service does.
 * Throws DataError.
 */
export async function openWriter({ db, dataDir, clusterUrl }: CommandFolder) {
  if (!findLogPosition(db)) return localWriter(db)
  requireSameMode(db, dataDir, clusterUrl)
  const host = hostIdOf(dataDir)
  const functions = loggedWrites(db, host)
  const folder = { db, dataDir, url: clusterUrl ?? '', host, functions }
  await applyWithoutService(folder)
  return writerOf((call) => submitCommand(folder, call))
}

/** Commits each call before it returns. */
export function localWriter(db: Database): CommandWriter {
  return writerOf(async ({ name, args }) => {
    const run = functionOf(sharedWrites(db), name)
    return inTransaction(db, () => run(args))
  })
}

const writerOf = (run: (call: Call) => Promise<unknown>): CommandWriter => ({
  call: (name, args) => run({ name, args }) as Promise<never>,
})
