const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A size as text, in the largest unit that fits, with one decimal below 10: `1.5 MiB`. */
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
