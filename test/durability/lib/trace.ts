/**
 * What a process did to its files and its clients, in order, as strace saw it. Memory-mapped
 * writes are no system calls and therefore not in it.
 */
export type TraceEvent =
  | { kind: 'write'; path: string; offset: number; bytes: Uint8Array }
  | { kind: 'truncate'; path: string; size: number }
  /** Opened for writing, and made if it was not there. */
  | { kind: 'create'; path: string; empties: boolean }
  | { kind: 'rename' | 'link'; from: string; path: string }
  | { kind: 'unlink' | 'mkdir'; path: string }
  /** Everything done to `path` before event number `since` is on the disk from here on. */
  | { kind: 'sync'; path: string; since: number }
  /** The first bytes that began their way to a client. */
  | { kind: 'send'; text: string }

const CALLS =
  'openat,open,creat,write,pwrite64,writev,pwritev,sendto,sendmsg,ftruncate,truncate,fallocate,' +
  'fsync,fdatasync,sync_file_range,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,' +
  'mkdirat,copy_file_range,sendfile'
/** Longer writes are cut short in the trace; only the zeros of a new hit journal may be. */
const BYTES_SHOWN = 65_536

/** Words that run a program under strace as this process's own child, with its trace in `file`. */
export const traced = (file: string): string[] => [
  'strace',
  '-D',
  '-f',
  '--seccomp-bpf',
  '-q',
  '-y',
  '-xx',
  '-ttt',
  '-s',
  String(BYTES_SHOWN),
  '-e',
  'signal=none',
  '-e',
  `trace=${CALLS}`,
  '-o',
  file,
]

/** A call as traced: lines of the trace at which it began and returned. */
interface Call {
  name: string
  args: string
  result: number
  /** Seconds, and the descriptors' own name space. */
  began: number
  ended: number
  trace: number
}

/** Puts the traces of processes that ran at the same time in one order, by the kernel's clock. */
export async function readTraces(files: readonly string[]): Promise<TraceEvent[]> {
  const calls: Call[] = []
  for (const [trace, file] of files.entries()) {
    calls.push(...parseCalls(await wholeTrace(file), trace))
  }
  return toEvents(calls)
}

const TRACER_DEADLINE_MS = 30_000

/** The tracer outlives what it traces: waits for its last words, the end of the first process. */
async function wholeTrace(file: string): Promise<string> {
  const deadline = performance.now() + TRACER_DEADLINE_MS
  while (performance.now() < deadline) {
    const text = await Bun.file(file).text()
    const pid = text.slice(0, text.indexOf(' '))
    if (new RegExp(`^${pid} .*\\+\\+\\+ (exited|killed)`, 'm').test(text.slice(-8192))) return text
    await Bun.sleep(50)
  }
  throw new Error(`${file} has no end`)
}

function parseCalls(text: string, trace: number): Call[] {
  const calls: Call[] = []
  const unfinished = new Map<string, { began: number; start: string }>()
  for (const line of text.split('\n')) {
    const begin = /^(\d+)\s+(\d+\.\d+) /.exec(line)
    if (!begin) continue
    const [head, pid, time] = begin as unknown as [string, string, string]
    let rest = line.slice(head.length)
    let began = Number(time)
    if (rest.endsWith('<unfinished ...>')) {
      unfinished.set(pid, { began, start: rest.slice(0, -'<unfinished ...>'.length).trimEnd() })
      continue
    }
    if (rest.startsWith('<... ')) {
      const earlier = unfinished.get(pid)
      if (!earlier) continue
      began = earlier.began
      rest = earlier.start + rest.slice(rest.indexOf('resumed>') + 'resumed>'.length)
    }
    const open = rest.indexOf('(')
    const close = rest.lastIndexOf(') ')
    const result = /= (-?\d+)/.exec(rest.slice(close))
    if (open < 0 || close < 0 || !result) continue
    const args = rest.slice(open + 1, close)
    const name = rest.slice(0, open)
    calls.push({ name, args, result: Number(result[1]), began, ended: Number(time), trace })
  }
  return calls
}

/** A write counts from its return on, a sync covers what returned before it began. */
function toEvents(calls: readonly Call[]): TraceEvent[] {
  const isSend = ({ name }: Call) => /^send|^writev$/.test(name)
  const moments = calls
    .filter(({ result }) => result >= 0)
    .flatMap((call) => {
      const end = { call, at: isSend(call) ? call.began : call.ended, isEnd: true }
      return isSync(call) ? [{ call, at: call.began, isEnd: false }, end] : [end]
    })
    .sort((one, other) => one.at - other.at)
  const events: TraceEvent[] = []
  const offsets = new Map<string, number>()
  const syncs = new Map<Call, number>()
  for (const { call, isEnd } of moments) {
    if (!isEnd) syncs.set(call, events.length)
    else {
      const event = toEvent(call, offsets, syncs.get(call) ?? 0)
      if (event) events.push(event)
    }
  }
  return events
}

const isSync = ({ name }: Call) => name === 'fsync' || name === 'fdatasync'

function toEvent(call: Call, offsets: Map<string, number>, since: number): TraceEvent | undefined {
  const { name, args, result } = call
  switch (name) {
    case 'openat':
    case 'open': {
      offsets.set(`${call.trace}:${result}`, 0)
      if (!/O_WRONLY|O_RDWR/.test(args) || !args.includes('O_CREAT')) return undefined
      return { kind: 'create', path: strings(args)[0] ?? '', empties: args.includes('O_TRUNC') }
    }
    case 'write': {
      const { fd, path } = descriptor(args)
      if (!path.startsWith('/')) return { kind: 'send', text: shown(args).toString('latin1') }
      const key = `${call.trace}:${fd}`
      const offset = offsets.get(key) ?? 0
      offsets.set(key, offset + result)
      return { kind: 'write', path, offset, bytes: content(args, result) }
    }
    case 'pwrite64': {
      const offset = Number(args.slice(args.lastIndexOf(',') + 1))
      return { kind: 'write', path: descriptor(args).path, offset, bytes: content(args, result) }
    }
    case 'ftruncate':
      return {
        kind: 'truncate',
        path: descriptor(args).path,
        size: Number(args.slice(args.lastIndexOf(',') + 1)),
      }
    case 'fsync':
    case 'fdatasync':
      return { kind: 'sync', path: descriptor(args).path, since }
    case 'sendto':
    case 'sendmsg':
      return { kind: 'send', text: strings(args).join('') }
    case 'writev':
      // A file's would need its offset.
      if (descriptor(args).path.startsWith('/')) throw new Error('writev is not understood')
      return { kind: 'send', text: strings(args).join('') }
    case 'rename':
    case 'renameat':
    case 'renameat2':
      return between('rename', args)
    case 'link':
    case 'linkat':
      return between('link', args)
    case 'unlink':
    case 'unlinkat':
      return { kind: 'unlink', path: strings(args)[0] ?? '' }
    case 'mkdir':
    case 'mkdirat':
      return { kind: 'mkdir', path: strings(args)[0] ?? '' }
    case 'sync_file_range':
      return undefined
    default:
      // A call that this reader does not know must not change a file unseen.
      if (descriptor(args).path.startsWith('/')) throw new Error(`${name} is not understood`)
      return undefined
  }
}

function between(kind: 'rename' | 'link', args: string): TraceEvent {
  const [from = '', path = ''] = strings(args)
  return { kind, from, path }
}

/** The quoted arguments. Within quotes every byte is \xhh, so that no quote stands for itself. */
function strings(args: string): string[] {
  return args
    .split('"')
    .filter((_, i) => i % 2 === 1)
    .map((text) => unescapeHex(text).toString())
}

function descriptor(args: string): { fd: string; path: string } {
  const [, fd = '', name = ''] = /^(\d+)<([^>]*)>/.exec(args.slice(0, 8192)) ?? []
  return { fd, path: unescapeHex(name).toString() }
}

function shown(args: string): Buffer {
  const start = args.indexOf('"') + 1
  return unescapeHex(args.slice(start, args.indexOf('"', start)))
}

function content(args: string, length: number): Uint8Array {
  const bytes = shown(args)
  if (bytes.length === length) return bytes
  if (bytes.some((byte) => byte !== 0)) throw new Error(`a write of ${length} bytes is cut short`)
  return new Uint8Array(length)
}

function unescapeHex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}
