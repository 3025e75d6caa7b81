import type { DataOf } from './db/subject.ts'
import { sharedPages } from './links/shared-pages.ts'

/** Everything that the program stores, by subject. */
export const subjects = { sharedPages }

/** `data.<subject>.<operation>(…)`: see db/subject.ts. */
export type Data = DataOf<typeof subjects>
