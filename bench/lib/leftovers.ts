import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Processes and folders that an interrupted run would leave. */
const children = new Set<Bun.Subprocess>()
const folders = new Set<TemporaryFolder>()
/** What to do before an interrupted run ends. */
const cleanups = new Set<() => Promise<void>>()

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) folder[Symbol.dispose]()
})

export function onInterrupt(cleanup: () => Promise<void>): Disposable {
  cleanups.add(cleanup)
  return { [Symbol.dispose]: () => cleanups.delete(cleanup) }
}

/** Stops the generators, cleans up and exits with 1. */
export async function interrupt(): Promise<never> {
  for (const child of children) child.kill('SIGKILL')
  await Promise.allSettled([...cleanups].map((cleanup) => cleanup()))
  process.exit(1)
}

/** Kills `child` when this process exits, unless it is killed with SIGKILL. */
export function tieToThisProcess<Child extends Bun.Subprocess>(child: Child): Child {
  children.add(child)
  child.exited.finally(() => children.delete(child))
  return child
}

/** A new empty folder, removed on disposal and at the latest when this process exits. */
export class TemporaryFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'hopcode-bench-'))

  constructor() {
    folders.add(this)
  }

  [Symbol.dispose](): void {
    folders.delete(this)
    rmSync(this.path, { recursive: true, force: true })
  }
}
