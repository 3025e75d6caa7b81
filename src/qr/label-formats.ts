import { type NamedRow, namedRows } from '../db/named-rows.ts'
import { subject } from '../db/subject.ts'
import type { Grid } from '../draw/sheet.ts'

export const LABEL_FORMATS_MAX = 20

/** Measures of a sheet of labels, under a name of the account. */
export type LabelFormat = NamedRow<'grid', Grid>

const rows = namedRows({
  table: 'label_formats',
  column: 'grid',
  field: 'grid',
  max: LABEL_FORMATS_MAX,
  encode: (grid: Grid) => JSON.stringify(grid),
  decode: (text) => JSON.parse(text) as Grid,
})

export const labelFormats = subject({
  forget: ['DELETE FROM label_formats WHERE account_id = ?1'],
  reads: (db) => ({ list: rows.lister(db) }),
  writes: { save: rows.save, delete: rows.delete },
})
