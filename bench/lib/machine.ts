import { cpus, loadavg, release, totalmem } from 'node:os'

/** The machine and the versions that figures depend on. */
export interface Machine {
  processor: string
  cores: number
  memoryGibibytes: number
  kernel: string
  /** Load average of the last minute, before the first round. */
  load: number
  bun: string
  /** Absent if not installed. */
  wrk?: string
  /** Short hash, with `+` if the tree has uncommitted changes; `unknown` outside a repository. */
  commit: string
  startedAt: string
}

export function describeMachine(): Machine {
  const wrk = firstMatch(['wrk', '-v'], /wrk (?:debian\/)?(\S+)/)
  const processors = cpus()
  return {
    processor: processors[0]?.model ?? 'unknown',
    cores: CORES,
    memoryGibibytes: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    load: loadavg()[0] ?? 0,
    bun: Bun.version,
    ...(wrk !== undefined && { wrk }),
    commit: describeCommit(),
    startedAt: new Date().toISOString(),
  }
}

export const isInstalled = (program: string): boolean => Bun.which(program) !== null

export const CORES = cpus().length

function describeCommit(): string {
  const commit = firstMatch(['git', 'rev-parse', '--short=12', 'HEAD'], /^(\w+)$/m)
  if (commit === undefined) return 'unknown'
  const changes = outputOf(['git', 'status', '--porcelain', '--', ':!bench/results'])
  return changes === '' ? commit : `${commit}+`
}

function firstMatch(command: string[], pattern: RegExp): string | undefined {
  return pattern.exec(outputOf(command))?.[1]
}

function outputOf(command: string[]): string {
  if (!isInstalled(command[0] ?? '')) return ''
  const { stdout, stderr } = Bun.spawnSync(command, { cwd: import.meta.dir })
  return `${stdout}${stderr}`.trim()
}
