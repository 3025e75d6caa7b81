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

interface Rated {
  done: number
  total?: number
  unit: string
  /** What was done when the time began. */
  before: number
  elapsedMs: number
}

/** `1,000 of 200,000 rows, 6,400/s, 32 s left`. Without a measurement, there is no rate. */
export function describeRate({ done, total, unit, before, elapsedMs }: Rated): string {
  const number = (n: number) => n.toLocaleString('en')
  const counted = `${number(done)}${total === undefined ? '' : ` of ${number(total)}`} ${unit}`
  const rate = elapsedMs > 0 ? (done - before) / (elapsedMs / 1000) : 0
  if (rate < 0.5) return counted
  const left = total === undefined ? '' : `, ${number(Math.ceil((total - done) / rate))} s left`
  return `${counted}, ${number(Math.round(rate))}/s${left}`
}

const NOTE_MS = 200

/** Rows, rate and remaining time, on one line of a terminal. */
export class Rate implements Disposable {
  readonly #progress = new Progress()
  #text = ''
  #before = 0
  #startedAt = performance.now()
  #printedAt = this.#startedAt

  /** `done` and `total` count rows, or the unit that is named. */
  note(text: string, counted: { done: number; total?: number; unit?: string }): void {
    const now = performance.now()
    if (text !== this.#text) {
      this.#text = text
      this.#startedAt = now
      this.#before = counted.done
    }
    if (now - this.#printedAt < NOTE_MS) return
    this.#printedAt = now
    const { unit = 'rows', ...counts } = counted
    const elapsedMs = now - this.#startedAt
    this.#progress.step(
      `${text} ${describeRate({ ...counts, unit, before: this.#before, elapsedMs })}`,
    )
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]()
  }
}
