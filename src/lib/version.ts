import manifest from '../../package.json' with { type: 'json' }

/** The release, as in package.json. */
export const VERSION: string = manifest.version

const STEP = 1000

/** The release as a whole number, which is higher for each later one: 2_001_000 for 2.1.0. */
export const RELEASE = VERSION.split('.', 3).reduce(
  (number, part) => number * STEP + Number.parseInt(part, 10),
  0,
)

export const releaseName = (release: number): string =>
  [STEP ** 2, STEP, 1].map((step) => Math.floor(release / step) % STEP).join('.')
