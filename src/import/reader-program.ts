import { writeFileSync } from 'node:fs'
import { cFunction } from '../lib/c-library.ts'
import { stackOf } from '../lib/log.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { readImport, type SentRows } from './plan.ts'
import type { Answer, ReaderInput } from './reader.ts'
import { SeveralDomains, SourceError, type SourceFile } from './source.ts'

/**
 * The process that reads the files of an import: see `reader.ts`. Standard input has a line of
 * JSON, the bytes of the uploads, and then one byte for each wanted answer, which is a line of JSON
 * on standard output.
 */
export async function serveReader(): Promise<void> {
  endWithParent()
  const input = new Input()
  const { files, options, isBackground }: ReaderInput<keyof SentRows> = JSON.parse(
    await input.line(),
  )
  if (isBackground) yieldToService()
  const sources: SourceFile[] = []
  for (const { name, path, isTrusted = false, size = 0 } of files) {
    const blob = path === undefined ? await input.blob(size) : Bun.file(path)
    sources.push({ name, blob, isTrusted, ...(path !== undefined && { path }) })
  }
  const readings = readImport(sources, options)
  while (await input.request()) await answer(await answerOf(readings.next()))
}

async function answerOf(
  reading: Promise<IteratorResult<Answer<unknown>, void>>,
): Promise<Answer<unknown>> {
  try {
    return (await reading).value ?? { failure: 'there is nothing more' }
  } catch (error) {
    if (error instanceof SeveralDomains) return { domains: error.domains }
    return error instanceof SourceError ? { problem: error.message } : { failure: stackOf(error) }
  }
}

const output = Bun.stdout.writer()

async function answer(value: Answer<unknown>): Promise<void> {
  output.write(`${JSON.stringify(value)}\n`)
  await output.flush()
}

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9

/** Ends this process together with the program that started it. */
function endWithParent(): void {
  const signature = { args: ['i32', 'u64'], returns: 'i32' } as const
  const prctl = cFunction<(option: number, value: number) => number>('prctl', signature)
  prctl?.(PR_SET_PDEATHSIG, SIGKILL)
}

/** Redirects and changes come first, for the processor and for memory. */
function yieldToService(): void {
  setThreadPriority('background')
  try {
    // If memory runs out, the kernel ends this process and not the service.
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Other systems have no such file.
  }
}

/** Standard input. */
class Input {
  readonly #reader = Bun.stdin.stream().getReader()
  #rest = new Uint8Array(0)

  async line(): Promise<string> {
    const parts: Uint8Array[] = []
    for (;;) {
      const end = this.#rest.indexOf(LINE_FEED)
      parts.push(end < 0 ? this.#rest : this.#rest.subarray(0, end))
      this.#rest = this.#rest.subarray(end < 0 ? this.#rest.length : end + 1)
      if (end >= 0) return Buffer.concat(parts).toString()
      await this.#readMore()
    }
  }

  async blob(size: number): Promise<Blob> {
    const parts: Uint8Array<ArrayBuffer>[] = []
    for (let left = size; left > 0; ) {
      if (this.#rest.length === 0) await this.#readMore()
      const part = this.#rest.slice(0, left)
      parts.push(part)
      left -= part.length
      this.#rest = this.#rest.subarray(part.length)
    }
    return new Blob(parts)
  }

  /** False at the end of the input. */
  async request(): Promise<boolean> {
    if (this.#rest.length === 0 && !(await this.#read())) return false
    this.#rest = this.#rest.subarray(1)
    return true
  }

  async #readMore(): Promise<void> {
    if (!(await this.#read())) throw new Error('the input has ended')
  }

  async #read(): Promise<boolean> {
    const { done, value } = await this.#reader.read()
    if (value) this.#rest = value
    return !done
  }
}

const LINE_FEED = 10
