import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a run that is cut short would leave behind: its processes and its folders. */
const children = new Set<Bun.Subprocess>()
const folders = new Set<TemporaryFolder>()

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) folder[Symbol.dispose]()
})

/** Sees to it that `child` does not outlive this process, unless that is killed outright. */
export function tieToThisProcess<Child extends Bun.Subprocess>(child: Child): Child {
  children.add(child)
  child.exited.finally(() => children.delete(child))
  return child
}

/** A new empty folder, removed when disposed of and at the latest when this process ends. */
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
