/**
 * The seed of tests whose rounds are random. It is the same in every run, so that a commit that has
 * passed once passes again, unless `TEST_SEED` sets it: `npm run test:durability` draws a new one.
 * Test titles show it.
 */
export const SEED = Number(process.env.TEST_SEED ?? 20_261_128)
