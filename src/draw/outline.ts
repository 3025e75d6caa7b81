/** Shapes of letters and modules, as SVG and PDF write them. */
export interface Outline {
  /** M, L, Q and C with one, one, two and three points, and Z with none. */
  commands: string
  /** x and y of each point in turn. */
  points: readonly number[]
}

/** Points of each command. */
const POINTS: Readonly<Record<string, number>> = { M: 1, L: 1, Q: 2, C: 3, Z: 0 }

export function* stepsOf({ commands, points }: Outline): Generator<[string, number[]], void> {
  let at = 0
  for (const command of commands) {
    const end = at + 2 * (POINTS[command] ?? 0)
    yield [command, points.slice(at, end)]
    at = end
  }
}

/** SVG path data with absolute M, L, Q and C, relative h and v, and Z or z. */
export function parsePath(path: string): Outline {
  const points: number[] = []
  let [commands, x, y] = ['', 0, 0]
  for (const [, letter = '', text = ''] of path.matchAll(/([MLQChvZz])([^A-Za-z]*)/g)) {
    const numbers = text.match(/-?[\d.]+/g)?.map(Number) ?? []
    if (letter === 'h') x += numbers[0] ?? 0
    else if (letter === 'v') y += numbers[0] ?? 0
    else [x = x, y = y] = numbers.slice(-2)
    const isStep = letter === 'h' || letter === 'v'
    commands += isStep ? 'L' : letter.toUpperCase()
    points.push(...(isStep ? [x, y] : numbers))
  }
  return { commands, points }
}

export const pathOf = (outline: Outline): string =>
  stepsOf(outline)
    .map(([command, points]) => command + points.map(shortNumber).join(' '))
    .toArray()
    .join('')

/** At most three decimals: a thousandth of a module or of a millimetre. */
export const shortNumber = (value: number): string => String(Math.round(value * 1000) / 1000)

/** One shape of several. */
export const joined = (outlines: readonly Outline[]): Outline => ({
  commands: outlines.map(({ commands }) => commands).join(''),
  points: outlines.flatMap(({ points }) => points),
})
