import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { NO_FOLLOW } from '../lib/symbolic-links.ts'

/**
 * The address of the service that uses a data folder, so that commands print links with its host,
 * whatever their own settings are. A stop removes the file; one left by a kill is ignored.
 */

const WebUrl = z.string().regex(/^https?:\/\/[^\s/]+$/)

const Running = z.object({
  pid: z.int().min(1),
  /** `BASE_URL` of the service. */
  base_url: WebUrl,
  /** Where it answers on this machine. */
  address: WebUrl,
})
type Running = z.infer<typeof Running>

const runningFile = (dataDir: string): string => join(dataDir, 'serving.json')

/**
 * For the holder of the folder's lock. The service does not depend on the file, which a full disk
 * may refuse.
 */
export function recordRunning(dataDir: string, where: Omit<Running, 'pid'>): void {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants
  try {
    const flags = O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | NO_FOLLOW
    const descriptor = openSync(runningFile(dataDir), flags, 0o600)
    try {
      writeSync(descriptor, `${JSON.stringify({ pid: process.pid, ...where })}\n`)
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // Commands then use their own settings.
  }
}

export function forgetRunning(dataDir: string): void {
  try {
    rmSync(runningFile(dataDir), { force: true })
  } catch {
    // If the disk refuses, the file stays, and is stale once this process has ended.
  }
}

/** Undefined if no service runs, or if its file is from a process that has ended. */
export function findRunning(dataDir: string): Running | undefined {
  const flag = constants.O_RDONLY | constants.O_NONBLOCK | NO_FOLLOW
  try {
    const text = readFileSync(runningFile(dataDir), { encoding: 'utf8', flag })
    const running = Running.parse(JSON.parse(text))
    return isAlive(running.pid) ? running : undefined
  } catch {
    // Absent, incomplete, or of another user: the settings of the command apply.
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
