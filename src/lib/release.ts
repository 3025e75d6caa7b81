/**
 * Frees the memory of bytes that nobody reads again: the whole buffer behind them is detached. The
 * engine would wait for 100 MiB of such garbage, and a collection takes 5 ms. Small buffers share
 * their memory with others, and are left.
 */
export function release({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize) buffer.transfer(0)
}
