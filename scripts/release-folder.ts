/**
 * Writes test/releases/<version>/, once, when the version is made: a data folder with a bit of
 * everything, the API description, and what tests know of both. `bun scripts/release-folder.ts`.
 */
import { writeRelease } from '../test/support/release-folder.ts'

await writeRelease()
process.exit(0)
