/** One row for each TCP port. */
const ROWS = 65_536
/** A token, a length, and the longest text of an IP address. */
const ROW_BYTES = 52
const TEXT = 5

/**
 * The client of each connection that a redirect thread forwards to the control thread, in shared
 * memory: a row for each local port of the connection between the two threads. The redirect thread
 * writes the row before it sends the first byte on that connection, and clears it when the control
 * thread has closed the connection. The control thread reads it when it has a request.
 */
export class PassedPeers {
  readonly memory: SharedArrayBuffer
  readonly #rows: Buffer

  constructor(memory = new SharedArrayBuffer(ROWS * ROW_BYTES)) {
    this.memory = memory
    this.#rows = Buffer.from(memory)
  }

  /** Returns a token for `clear`. */
  set(port: number, address: string): number {
    const at = port * ROW_BYTES
    const token = crypto.getRandomValues(new Uint32Array(1))[0] as number
    this.#rows.writeUInt32LE(token, at)
    this.#rows[at + 4] = this.#rows.write(address, at + TEXT, ROW_BYTES - TEXT, 'latin1')
    return token
  }

  /** Another thread may have got the port for a new connection already: its row stays. */
  clear(port: number, token: number): void {
    const at = port * ROW_BYTES
    if (this.#rows.readUInt32LE(at) === token) this.#rows[at + 4] = 0
  }

  /** Undefined: no redirect thread has the connection. */
  findByPort(port: number): string | undefined {
    const at = port * ROW_BYTES
    const length = this.#rows[at + 4] ?? 0
    return length === 0 ? undefined : this.#rows.toString('latin1', at + TEXT, at + TEXT + length)
  }
}
