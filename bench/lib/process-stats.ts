import { readdirSync, readFileSync } from 'node:fs'

/** Ticks a second of the times under /proc: fixed at 100 on every Linux that Bun runs on. */
const TICKS_PER_SECOND = 100

/**
 * User and system time of a process, all its threads, in seconds to 10 ms. Linux only. Throws if it
 * is gone.
 */
export const cpuSecondsOf = (pid: number): number => ticksIn(`/proc/${pid}/stat`)

/** The same for the main thread, which in Hopcode is the control thread. */
export const mainThreadSecondsOf = (pid: number): number => ticksIn(`/proc/${pid}/task/${pid}/stat`)

/**
 * The same for the JavaScript workers with the lowest niceness. The engine's own threads, which
 * compile and collect garbage for all workers, can have it too and do not count.
 */
export const usualWorkerSecondsOf = (pid: number): number => workerSecondsOf(pid, 0)

/** The same for the worker that writes: it has the second lowest niceness (decision 013). */
export const writerSecondsOf = (pid: number): number => workerSecondsOf(pid, 1)

/** `rank`: of the niceness, among those of all workers. */
function workerSecondsOf(pid: number, rank: number): number {
  const workers = readdirSync(`/proc/${pid}/task`)
    .flatMap((id) => {
      try {
        return fieldsIn(`/proc/${pid}/task/${id}/stat`)
      } catch {
        // The thread has ended meanwhile.
        return []
      }
    })
    .filter(({ name }) => name === 'Worker')
  const ranks = [...new Set(workers.map(({ niceness }) => niceness))].sort((a, b) => a - b)
  const chosen = workers.filter(({ niceness }) => niceness === ranks[rank])
  return chosen.reduce((sum, { seconds }) => sum + seconds, 0)
}

const ticksIn = (file: string): number => fieldsIn(file).seconds

function fieldsIn(file: string): { name: string; niceness: number; seconds: number } {
  const stat = readFileSync(file, 'latin1')
  // The name, in parentheses, may contain spaces: the fields are counted after it.
  const end = stat.lastIndexOf(')')
  const fields = stat.slice(end + 2).split(' ')
  return {
    name: stat.slice(stat.indexOf('(') + 1, end),
    niceness: Number(fields[16]),
    seconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
  }
}

export interface Memory {
  /** Total in MiB: `anonymous` and `mapped`. */
  resident: number
  /** Heaps and stacks. */
  anonymous: number
  /** Pages of mapped files, which the kernel may take back: the program itself, the hit journal. */
  mapped: number
}

/** Resident memory of a process. Linux only. Throws if it is gone. */
export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const mebibytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024
  return {
    resident: mebibytes('VmRSS'),
    anonymous: mebibytes('RssAnon'),
    mapped: mebibytes('RssFile') + mebibytes('RssShmem'),
  }
}

/** Seconds that all cores together were busy since the start of the machine. Linux only. */
export function machineBusySeconds(): number {
  const [cpu = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = cpu
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softIrq + steal) / TICKS_PER_SECOND
}
