import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Processes and folders that an interrupted run would leave. */
const children = new Set<Bun.Subprocess>()
const folders = new Set<TemporaryFolder>()

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) folder[Symbol.dispose]()
})

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
