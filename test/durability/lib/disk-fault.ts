/** What the kernel does to system calls of a running process, by strace. */

export interface FaultWords {
  /** System calls, comma-separated. */
  calls: string
  /** What each call ends with; or how long it waits before it is done. */
  fault: 'EIO' | 'ENOSPC' | 'EROFS' | { delayMs: number }
  /** Calls on other files are left alone; without any, calls on every file are meant. */
  files?: readonly string[]
  /** Which of the calls fail, as strace says it: `2+3` is the second and then every third. */
  when?: string
}

export class DiskFault implements AsyncDisposable {
  readonly #tracer: Bun.Subprocess<'ignore', 'ignore', 'pipe'>

  private constructor(tracer: Bun.Subprocess<'ignore', 'ignore', 'pipe'>) {
    this.#tracer = tracer
  }

  /** Resolves once the fault is there. The process stays in the fault until the block ends. */
  static async begin(
    pid: number,
    { calls, fault, files = [], when }: FaultWords,
  ): Promise<DiskFault> {
    const what = typeof fault === 'string' ? `error=${fault}` : `delay_enter=${fault.delayMs}ms`
    const words = [
      'strace',
      '-f',
      '-p',
      String(pid),
      '-o',
      '/dev/null',
      '-e',
      `trace=${calls}`,
      '-e',
      `inject=${calls}:${what}${when ? `:when=${when}` : ''}`,
      ...files.flatMap((file) => ['-P', file]),
    ]
    const tracer = Bun.spawn(words, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
    let said = ''
    const decoder = new TextDecoder()
    const reader = tracer.stderr.getReader()
    while (!/attached/.test(said)) {
      const { done, value } = await reader.read()
      if (done) throw new Error(`no fault began: ${said}`)
      said += decoder.decode(value)
    }
    return new DiskFault(tracer)
  }

  /** The calls succeed again when this resolves. */
  async end(): Promise<void> {
    if (this.#tracer.exitCode === null) this.#tracer.kill('SIGINT')
    await this.#tracer.exited
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end()
  }
}
