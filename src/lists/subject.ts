import { subject } from '../db/subject.ts'
import { exportScans } from './export.ts'
import { listScans } from './lists.ts'
import { searchAllScans } from './search-all.ts'
import { tagScans } from './tags.ts'

/** Which links an account has, and how many. */
export const lists = subject({
  scans: { ...listScans, ...tagScans, ...exportScans, ...searchAllScans },
})
