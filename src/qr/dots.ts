/** Dots in rows from the top left: 1 is dark, 0 is light. */
export interface Dots {
  readonly width: number
  readonly height: number
  readonly data: Uint8Array
}

/** The modules of a QR code, a square. */
export interface QrMatrix {
  /** Modules on one side. */
  readonly size: number
  readonly data: Uint8Array
}
