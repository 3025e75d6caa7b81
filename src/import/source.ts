/** A file to import. */
export interface SourceFile {
  name: string
  blob: Blob
  /** On this machine; absent for an uploaded file. */
  path?: string
}

/** A row of a source: its values by the names that the source has for them. */
export interface SourceRow {
  /** From 1: the line in the file, or the number of the link where lines mean nothing. */
  line: number
  values: Readonly<Record<string, unknown>>
}

/** A file cannot be read as what it should be. The message is for the user. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
}

export type SourceRows = AsyncGenerator<SourceRow, void> | Generator<SourceRow, void>
