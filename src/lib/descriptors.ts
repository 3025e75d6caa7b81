import { readFileSync } from 'node:fs'

/** Maximum number of descriptors of this process; undefined on systems other than Linux. */
export function descriptorsMax(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]) || undefined
  } catch {
    return undefined
  }
}
