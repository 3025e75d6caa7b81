/**
 * Worker threads that outlive the service that started them: a start costs up to 100 ms of CPU,
 * most of it for the modules, and a test file starts dozens of services. The next service that asks
 * for the same module gets a thread whose last service has closed it. Nothing else is shared: a
 * thread's service opens everything anew from its settings.
 */

const idle = new Map<string, ReusedWorker[]>()

/** An idle thread of that module, or a new one. */
export function openReusedWorker(url: URL): Worker {
  return idle.get(url.href)?.pop() ?? new ReusedWorker(url)
}

const PASSWORDS = '/threads/passwords.ts'
const QUICK_PASSWORDS = new URL('./quick-passwords.ts', import.meta.url)

/** The same, but hashing passwords costs next to nothing. */
export const openQuickWorker = (url: URL): Worker =>
  openReusedWorker(url.pathname.endsWith(PASSWORDS) ? QUICK_PASSWORDS : url)

class ReusedWorker extends Worker {
  readonly #url: string
  readonly #listeners: Parameters<Worker['addEventListener']>[] = []
  #isStopped = false

  constructor(url: URL) {
    super(url)
    this.#url = url.href
    super.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
      this.#isStopped = typeof data === 'object' && data !== null && 'stopped' in data
    })
  }

  override addEventListener(...args: Parameters<Worker['addEventListener']>): void {
    this.#listeners.push(args)
    super.addEventListener(...args)
  }

  /** Keeps the thread for the next service if it has closed everything of the last one. */
  override terminate(): void {
    if (!this.#isStopped) {
      super.terminate()
      return
    }
    for (const [type, listener] of this.#listeners.splice(0)) {
      super.removeEventListener(type, listener)
    }
    this.onmessage = null
    this.onerror = null
    this.#isStopped = false
    const others = idle.get(this.#url)
    if (others) others.push(this)
    else idle.set(this.#url, [this])
  }
}
