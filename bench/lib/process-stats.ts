import { readFileSync } from 'node:fs'

/** Ticks a second of the times under /proc: fixed at 100 on every Linux that Bun runs on. */
const TICKS_PER_SECOND = 100

/**
 * User and system time of a process, all its threads, in seconds to 10 ms. Linux only. Throws if it
 * is gone.
 */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The program's name, in parentheses, may hold spaces: the fields count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Resident memory of a process in MiB. Linux only. Throws if it is gone. */
export function residentMebibytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024
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
