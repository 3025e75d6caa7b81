/** Slots for requests in progress: a bounded number, and one for each host. */
export class HostSlots {
  readonly #max: number
  readonly #busy = new Set<string>()
  #waiting: { host: string; start: () => void }[] = []

  constructor(max: number) {
    this.#max = max
  }

  /** Resolves when the caller has a slot, in the order of the calls as far as hosts allow. */
  async take(host: string): Promise<void> {
    if (this.#isFree(host)) {
      this.#busy.add(host)
      return
    }
    await new Promise<void>((start) => this.#waiting.push({ host, start }))
  }

  release(host: string): void {
    this.#busy.delete(host)
    const next = this.#waiting.find((one) => this.#isFree(one.host))
    if (!next) return
    this.#waiting = this.#waiting.filter((one) => one !== next)
    this.#busy.add(next.host)
    next.start()
  }

  #isFree = (host: string): boolean => this.#busy.size < this.#max && !this.#busy.has(host)
}
