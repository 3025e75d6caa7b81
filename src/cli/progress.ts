import { printProgress } from '../lib/log.ts'

/** What a long command is doing, on one line of a terminal. Clear it by disposing. */
export class Progress implements Disposable {
  #percent = -1

  step(text: string): void {
    this.#percent = -1
    printProgress(`${text} …`)
  }

  /** `done` and `total` have the same unit. */
  advance(text: string, done: number, total: number): void {
    const percent = total > 0 ? Math.min(100, Math.floor((done / total) * 100)) : 0
    if (percent === this.#percent) return
    this.#percent = percent
    printProgress(`${text} … ${percent} %`)
  }

  [Symbol.dispose](): void {
    printProgress('')
  }
}
