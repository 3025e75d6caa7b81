/** A problem of the data folder. The message names the file and the remedy. */
export class DataError extends Error {
  override readonly name = 'DataError'
}

/** The one documented remedy for lost or damaged files: docs/operations/backup.md. */
export const RUN_RESTORE = 'Run "hopcode restore" with a backup.'
