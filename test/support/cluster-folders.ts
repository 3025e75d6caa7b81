import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, type Settings, unlimited } from './binary.ts'
import { temporaryFolder } from './folder.ts'
import type { PostgresServer } from './postgres.ts'

/** Data folders on which tests run the commands of a cluster. */

/** Data folders whose settings lead to one cluster of their own. */
export async function newFolders(server: PostgresServer) {
  const clusterUrl = server.url(await server.createDatabase())
  const folder = temporaryFolder()
  const settings = (name: string, more: Settings = {}): Settings =>
    Object.assign(
      unlimited(join(folder.path, name)),
      { BASE_URL: 'http://hop.test', CLUSTER_URL: clusterUrl },
      more,
    )
  return { folder, settings, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

/** Runs a command that must succeed. Returns what it prints. */
export async function run(args: string, env: Settings): Promise<string> {
  const { code, out, err } = await command(args.split(' '), env)
  expect([args, code, err]).toEqual([args, 0, err])
  return out
}

export async function refusal(args: string, env: Settings): Promise<string> {
  const { code, out, err } = await command(args.split(' '), env)
  expect([args, code, out]).toEqual([args, 1, ''])
  // One line, without credentials.
  expect(err.trim().split('\n')).toHaveLength(1)
  expect(err).not.toContain('postgres://')
  return err
}

/** The second host is a copy of the first. */
export async function joinFrom(from: Settings, to: Settings): Promise<void> {
  const file = join(from.DATA_DIR ?? '', 'for-join.hopcode')
  await run(`backup --for-join ${file}`, from)
  await run(`cluster join ${file}`, to)
  rmSync(file)
}

export const rowsOf = async (env: Settings) =>
  JSON.parse((await command(['cluster', 'status', '--json'], env)).out) as {
    ok: boolean
    entry: number
    hosts: { id: string; name: string; live: boolean; applied: number; this_host: boolean }[]
  }
