const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** As a person reads it: two digits at least, and no more than needed. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  const text = value < 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value))
  return `${text} ${UNITS[unit]}`
}
