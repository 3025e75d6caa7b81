const RETRY_MS = 20

/**
 * Runs `listen` while no other process of this machine does so for the port: two starts at the same
 * time would both find the port free, and then share it. The lock is an abstract Unix socket
 * (unix(7)), which the kernel releases however the process ends. Other systems than Linux have
 * none.
 */
export async function withPortLock<Result>(
  port: number,
  listen: () => Promise<Result>,
): Promise<Result> {
  const lock = port === 0 ? undefined : await claim(`\0hopcode-port-${port}`)
  try {
    return await listen()
  } finally {
    lock?.stop(true)
  }
}

async function claim(unix: string) {
  for (;;) {
    try {
      return Bun.listen({ unix, socket: { data: () => {} } })
    } catch (error) {
      if ((error as { code?: string }).code !== 'EADDRINUSE') return undefined
      await Bun.sleep(RETRY_MS)
    }
  }
}
