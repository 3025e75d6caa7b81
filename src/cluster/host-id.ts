import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DataError } from '../lib/data-error.ts'
import { writeOnce } from '../lib/flush.ts'

export const hostIdFile = (dataDir: string): string => join(dataDir, 'host.id')

/** The id of the host with this data folder, which is created once. Throws DataError. */
export function hostIdOf(dataDir: string): string {
  const file = hostIdFile(dataDir)
  if (!existsSync(file)) writeOnce(file, `${crypto.randomUUID()}\n`)
  const id = z.uuid().safeParse(readFileSync(file, 'utf8').trim())
  if (!id.success) throw new DataError(`${file} is damaged. Delete it, and join the cluster again.`)
  return id.data
}
