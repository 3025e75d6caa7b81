import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { SECOND } from '../lib/clock.ts'
import type { Reading, ReadOptions, SentRows } from './plan.ts'
import { type FoundDomains, SeveralDomains, SourceError, type SourceFile } from './source.ts'

/**
 * Reads files in a process of its own, because a file of a stranger may take any time and memory,
 * and a thread that loops in SQLite cannot be ended. The process answers one request at a time, so
 * that nothing piles up between the two: `reader-program.ts` is its side.
 */

/** The first word on the command line of the process. */
export const READER_COMMAND = 'read-import'

/** Processor time for one answer. A file that is read normally has one every 200 ms. */
const ANSWER_MS = 10 * SECOND
/** The process may wait for a processor, or for a disk. */
const WAITING_FACTOR = 12
/** The largest files of owners need up to 340 MiB. */
const MEMORY_MAX_BYTES = 384 * 1024 * 1024
const WATCH_MS = 50
/** Characters of an answer: a batch of rows. */
const ANSWER_CHARACTERS_MAX = 64 * 1024 * 1024
const CHUNK_BYTES = 64 * 1024

/** What the process reads first, as one line of JSON; the bytes of its uploads follow. */
export interface ReaderInput<As extends keyof SentRows> {
  /** `size`: of an uploaded file. A file with a `path` is opened by the process. */
  files: (Pick<SourceFile, 'name' | 'path' | 'isTrusted'> & { size?: number | undefined })[]
  options: ReadOptions<As>
  isBackground: boolean
}

/**
 * `problem`: a SourceError, for the user. `domains`: those of a SeveralDomains. `failure`: a fault
 * of the program.
 */
export type Answer<Sent> =
  | Reading<Sent>
  | { problem: string }
  | { domains: FoundDomains }
  | { failure: string }

interface ReaderLimits {
  /** Ends the process. */
  signal?: AbortSignal | undefined
  /** Processor time for the whole reading. */
  totalMs?: number | undefined
  memoryMaxBytes?: number | undefined
  /** The process yields the processor to the service. */
  isBackground?: boolean | undefined
}

/**
 * `readImport` in a process that is ended with the generator. Throws SourceError, also for files
 * that take too long or too much memory.
 */
export async function* readInProcess<As extends keyof SentRows>(
  files: readonly SourceFile[],
  options: ReadOptions<As>,
  limits: ReaderLimits = {},
): AsyncGenerator<Reading<SentRows[As]>, void> {
  await using reader = new ReaderProcess(limits)
  await reader.open(files, options)
  for (;;) {
    const answer = (await reader.next()) as Answer<SentRows[As]>
    if ('problem' in answer) throw new SourceError(answer.problem)
    if ('domains' in answer) throw new SeveralDomains(answer.domains)
    if ('failure' in answer) throw new Error(answer.failure)
    yield answer
    if ('isEnd' in answer) return
  }
}

const TOO_SLOW = 'cannot be read in a reasonable time: it is damaged, or made to be slow.'
const TOO_LARGE = 'needs too much memory to be read: it is damaged, or made so.'

class ReaderProcess implements AsyncDisposable {
  readonly #child
  readonly #out
  readonly #watch: Timer
  readonly #limits: ReaderLimits
  #name = 'The file'
  #buffered = ''
  /** When the process was asked, and the processor time that it had used by then. */
  #asked: { at: number; usedMs: number } | undefined
  #end: Error | undefined

  constructor(limits: ReaderLimits) {
    limits.signal?.throwIfAborted()
    this.#limits = limits
    this.#child = Bun.spawn(commandLine(), {
      // No settings: they contain secrets.
      env: {},
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'ignore',
    })
    this.#out = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader()
    this.#watch = setInterval(() => this.#check(), WATCH_MS)
    limits.signal?.addEventListener('abort', this.#abort)
  }

  async open<As extends keyof SentRows>(
    files: readonly SourceFile[],
    options: ReadOptions<As>,
  ): Promise<void> {
    this.#name = files.map(({ name }) => name).join(', ')
    const input: ReaderInput<As> = {
      files: files.map(({ name, path, isTrusted, blob }) => {
        const file = { name, ...(isTrusted !== undefined && { isTrusted }) }
        return path === undefined ? { ...file, size: blob.size } : { ...file, path }
      }),
      options,
      isBackground: this.#limits.isBackground === true,
    }
    await this.#write(`${JSON.stringify(input)}\n`)
    for (const { blob, path } of files) {
      if (path !== undefined) continue
      for (let at = 0; at < blob.size; at += CHUNK_BYTES) {
        await this.#write(await blob.slice(at, at + CHUNK_BYTES).arrayBuffer())
      }
    }
  }

  /** The answer to the next request. */
  async next(): Promise<unknown> {
    await this.#write('\n')
    this.#asked = { at: performance.now(), usedMs: usageOf(this.#child.pid).cpuMs }
    for (let end = -1; end < 0; ) {
      const { done, value } = await this.#out.read()
      if (done || this.#end) throw this.#end ?? new Error('the reader of files has ended')
      end = value.indexOf('\n')
      this.#buffered += value
      if (this.#buffered.length > ANSWER_CHARACTERS_MAX)
        throw new SourceError(`${this.#name} ${TOO_LARGE}`)
    }
    this.#asked = undefined
    const answer = JSON.parse(this.#buffered)
    this.#buffered = ''
    return answer
  }

  async #write(data: string | ArrayBuffer): Promise<void> {
    if (this.#end) throw this.#end
    try {
      await this.#child.stdin.write(data)
      await this.#child.stdin.flush()
    } catch (error) {
      // The reason why it was ended says more than its closed pipe.
      throw this.#end ?? error
    }
  }

  #check(): void {
    const { totalMs = Number.POSITIVE_INFINITY, memoryMaxBytes = MEMORY_MAX_BYTES } = this.#limits
    const { cpuMs, residentBytes } = usageOf(this.#child.pid)
    const { at, usedMs } = this.#asked ?? { at: performance.now(), usedMs: cpuMs }
    const isSlow =
      cpuMs - usedMs > ANSWER_MS ||
      cpuMs > totalMs ||
      performance.now() - at > WAITING_FACTOR * ANSWER_MS
    if (isSlow) this.#kill(new SourceError(`${this.#name} ${TOO_SLOW}`))
    else if (residentBytes > memoryMaxBytes) {
      this.#kill(new SourceError(`${this.#name} ${TOO_LARGE}`))
    }
  }

  readonly #abort = (): void => this.#kill(new Error('the service stops'))

  #kill(reason: Error): void {
    this.#end ??= reason
    this.#child.kill('SIGKILL')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#watch)
    this.#limits.signal?.removeEventListener('abort', this.#abort)
    this.#kill(new Error('the reader of files is closed'))
    await this.#child.exited
  }
}

/** This program, compiled or from its sources. */
function commandLine(): string[] {
  const isCompiled = Bun.main.startsWith('/$bunfs/')
  const main = isCompiled ? [] : [fileURLToPath(new URL('../main.ts', import.meta.url))]
  return [process.execPath, ...main, READER_COMMAND]
}

const PAGE_BYTES = 4096
/** Unit in which proc(5) counts processor time: a hundredth of a second. */
const TICK_MS = 10

/** Zeros on systems other than Linux, and after the end of the process. */
function usageOf(pid: number): { cpuMs: number; residentBytes: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name, in brackets, may contain spaces: the fields after it begin with the third.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [user, system, pages] = [fields[11], fields[12], fields[21]].map(Number)
    return {
      cpuMs: ((user ?? 0) + (system ?? 0)) * TICK_MS,
      residentBytes: (pages ?? 0) * PAGE_BYTES,
    }
  } catch {
    return { cpuMs: 0, residentBytes: 0 }
  }
}
