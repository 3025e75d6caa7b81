/** Rejects with `message` if `work` takes longer than `ms`. The work itself continues. */
export async function withTimeout<Result>(
  ms: number,
  work: Promise<Result>,
  message: string,
): Promise<Result> {
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), ms)
  })
  return await Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** Repeats `work` until it succeeds, or for `ms`; then rejects with its last error. */
export async function retry<Result>(
  { ms, pauseMs }: { ms: number; pauseMs: number },
  work: () => Promise<Result>,
): Promise<Result> {
  const deadline = performance.now() + ms
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() >= deadline) throw error
      await Bun.sleep(pauseMs)
    }
  }
}
