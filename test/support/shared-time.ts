/** Both clocks of a test, in memory that the threads of the service share. */
export function sharedTime(start: number) {
  const memory = new SharedArrayBuffer(16)
  const times = new Float64Array(memory)
  times.set([start, 1000])
  return {
    memory,
    get now() {
      return times[0] as number
    },
    set now(ms: number) {
      times[0] = ms
    },
    get monotonic() {
      return times[1] as number
    },
    set monotonic(ms: number) {
      times[1] = ms
    },
  }
}
