/** The data folder is not as the service needs it. The message names the file and the way out. */
export class DataError extends Error {
  override readonly name = 'DataError'
}
