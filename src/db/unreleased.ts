/**
 * Databases of the commits before 1.0.0, which are not upgraded. The version after theirs has the
 * first migration of `drizzle/` (decision 047).
 */

export const LAST_UNRELEASED = 33
/** The last commit that upgrades older databases, to the tables of 1.0.0. */
const UPGRADING_COMMIT = 'dff57564'

export const isTooOld = (version: number): boolean => version > 0 && version <= LAST_UNRELEASED

export const tooOld = (version: number): string =>
  `has version ${version}, of a commit before 1.0.0. First start commit ${UPGRADING_COMMIT} with ` +
  `it, which makes it version ${LAST_UNRELEASED + 1}, then this program.`
