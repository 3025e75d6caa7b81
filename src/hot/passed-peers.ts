/** One row for each TCP port. */
const ROWS = 65_536
/** A length, and the longest text of an IP address. */
const ROW_BYTES = 48

/**
 * The client of each connection that a redirect thread forwards to the control thread, in shared
 * memory: a row for each local port of the connection between the two threads, with the length of
 * the client's address and its text. The redirect thread writes the row before it sends the first
 * byte on that connection, and the control thread reads it when it has a request, perhaps after the
 * connection was closed: a row stays until the port is used again.
 */
export class PassedPeers {
  readonly memory: SharedArrayBuffer
  readonly #rows: Buffer

  constructor(memory = new SharedArrayBuffer(ROWS * ROW_BYTES)) {
    this.memory = memory
    this.#rows = Buffer.from(memory)
  }

  set(port: number, address: string): void {
    const at = port * ROW_BYTES
    this.#rows[at] = this.#rows.write(address, at + 1, ROW_BYTES - 1, 'latin1')
  }

  /** Undefined: no redirect thread has opened the connection. */
  find(port: number): string | undefined {
    const at = port * ROW_BYTES
    const length = this.#rows[at] ?? 0
    return length === 0 ? undefined : this.#rows.toString('latin1', at + 1, at + 1 + length)
  }
}
