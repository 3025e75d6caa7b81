import type { Database } from 'bun:sqlite'
import type { JournalFile } from '../hot/journal-file.ts'
import type { CallOptions, NamedFunctions } from '../lib/thread.ts'
import { type Author, authorCheck, deniedError, isDenied, type Least } from './author.ts'
import { type Event, type EventReader, RULES_CHANGED } from './events.ts'

/**
 * A subject is everything that the program does with some tables, as one value: reads, scans,
 * writes, and what it writes when others change something. This file derives from it what each
 * thread needs, so that an operation is declared once and called as
 * `data.<subject>.<operation>(…)`.
 */
export interface Subject<Reads, Scans, Writes> {
  /** Reads of a few rows, on the caller's own connection. */
  reads: (db: Database) => Reads
  /** Reads of many rows, on the reader thread. */
  scans: Scans
  /** Changes, on the writer thread, inside the transaction of its batch. */
  writes: Writes
  /**
   * Prepares a reader of the events of all writes, inside the transaction of each: what it writes
   * is stored together with the change, and if it throws, the write fails. It depends on the
   * database and the events only.
   */
  onEvents?: ((db: Database) => WriteReader) | undefined
  /**
   * Statements that remove the rows of a deleted account, whose id is `?1`, in the transaction that
   * removes the account. Its links are gone.
   */
  forget: readonly string[]
}

/** `isNeeded`: false for a message whose events it would ignore, so that none is made for it. */
type WriteReader = EventReader & { isNeeded?: (message: unknown) => boolean }

/** Prepares a function on a connection, once for each. */
export type Prepare<Args, Result> = (db: Database) => (args: Args) => Result

type ScanTable = Record<string, Prepare<never, unknown>>

/** A write, as the writer thread runs it and the control thread calls it. */
export interface Write<Command, Result> {
  /** The write concerns this host only and stays out of the log of a cluster. */
  readonly isLocal?: true
  /**
   * What the author of the command needs at least. Otherwise the writer changes nothing, and the
   * call throws `invalid_api_key`, `sign_in_needed` or `role_needed`.
   */
  readonly least?: Least
  /** The result depends on the database and the arguments only: a write may run again. */
  prepare(db: Database, host: WriteContext): (message: never) => unknown
  /**
   * What has happened. Depends on its arguments only, because it runs on two threads: see
   * `onEvents` and `EventReader`. `message`: the command as `pack` returned it; absent after the
   * commit of another host's write.
   */
  events?(result: Result, message: unknown): readonly Event[]
  /** Another form of a large command and result in messages between threads. */
  pack?(command: Command): unknown
  unpack?(packed: unknown): Result
}

type WriteTable = Record<string, Write<never, unknown>>

/** What the writer thread has besides its connection. */
export interface WriterHost {
  /** The id of this host in its cluster; empty for a host alone. */
  id: string
  /** The journal of this host. Absent before it is opened: only entries of the log are applied. */
  journal?: Pick<JournalFile, 'read'>
}

/** What a write has besides its connection. */
export interface WriteContext extends WriterHost {
  /** Calls `forget` of all subjects. */
  forgetAccount(id: number): void
}

interface PlainWrite<Command, Result> {
  prepare(db: Database, host: WriteContext): (command: Command) => Result
  events?(result: Result, command: Command | undefined): readonly Event[]
}

/** A write without events is its `prepare` alone. */
type Declared<Command, Result> =
  | PlainWrite<Command, Result>
  | PlainWrite<Command, Result>['prepare']

const plainWrite = <Command, Result>(
  declared: Declared<Command, Result>,
): PlainWrite<Command, Result> =>
  typeof declared === 'function' ? { prepare: declared } : declared

interface PackedWrite<Command, Result, Message, Packed> {
  pack(command: Command): Message
  prepare(db: Database, host: WriteContext): (message: Message) => Packed
  unpack(packed: Packed): Result
  events?(result: Result, message: Message | undefined): readonly Event[]
}

export const subject = <
  Reads = unknown,
  Scans extends ScanTable = Record<never, never>,
  Writes extends WriteTable = Record<never, never>,
>({
  reads = () => ({}) as Reads,
  scans = {} as Scans,
  writes = {} as Writes,
  onEvents,
  forget = [],
}: Partial<Subject<Reads, Scans, Writes>>): Subject<Reads, Scans, Writes> => ({
  reads,
  scans,
  writes,
  onEvents,
  forget,
})

/** Declares a read of many rows. */
export const scan = <Args, Result>(prepare: Prepare<Args, Result>): Prepare<Args, Result> => prepare

/** Declares a write that all hosts of a cluster apply. */
export const write = <Command, Result>(
  declared: Declared<Command, Result>,
): Write<Command, Result> => plainWrite(declared)

/** A command that somebody asks for. */
export interface Authored {
  author: Author
}

/** Declares a write that somebody asks for, with what they need at least. */
export const authoredWrite = <Command extends Authored, Result>(
  least: Least,
  declared: Declared<Command, Result>,
): Write<Command, Result> => ({ ...plainWrite(declared), least })

/** Declares a write after which any link may answer otherwise, with what it needs at least. */
export const rulesWrite = <Command extends Authored, Result>(
  least: Least,
  prepare: PlainWrite<Command, Result>['prepare'],
): Write<Command, Result> => ({ prepare, events: () => RULES_CHANGED, least })

/** Declares a write of this host only, which stays out of the log of a cluster. */
export const localWrite = <Command, Result>(
  declared: Declared<Command, Result>,
): Write<Command, Result> => ({ ...plainWrite(declared), isLocal: true })

/** Declares a write whose command and result have another form in messages. */
export const packedWrite = <Command, Result, Message, Packed>(
  declared: PackedWrite<Command, Result, Message, Packed> & { least?: Least },
): Write<Command, Result> => declared as Write<Command, Result>

/** Shares what `prepare` creates among the operations on a connection. */
export function perConnection<Prepared>(
  prepare: (db: Database) => Prepared,
): (db: Database) => Prepared {
  const prepared = new WeakMap<Database, { value: Prepared }>()
  return (db) => {
    const found = prepared.get(db) ?? { value: prepare(db) }
    prepared.set(db, found)
    return found.value
  }
}

/** The host of a cluster whose call is being applied on a connection; empty for a host alone. */
export const callOrigin = perConnection(() => ({ host: '' }))

/** An operation on another thread. One without arguments needs none. */
type Remote<Args, Result> = [Args] extends [never]
  ? (args?: undefined, options?: CallOptions) => Promise<Awaited<Result>>
  : (args: Args, options?: CallOptions) => Promise<Awaited<Result>>

export type ScanCalls<Scans> = {
  [Name in keyof Scans]: Scans[Name] extends Prepare<infer Args, infer Result>
    ? Remote<Args, Result>
    : never
}

export type WriteCalls<Writes> = {
  [Name in keyof Writes]: Writes[Name] extends Write<infer Command, infer Result>
    ? Remote<Command, Result>
    : never
}

/** All operations of a subject, as its users call them. */
export type Operations<Of> =
  Of extends Subject<infer Reads, infer Scans, infer Writes>
    ? Reads & ScanCalls<Scans> & WriteCalls<Writes>
    : never

/** All subjects, by the name that their users call them by. */
export type Subjects = Record<string, Subject<unknown, ScanTable, WriteTable>>

export type DataOf<All> = { [Name in keyof All]: Operations<All[Name]> }

/** Calls a function of a thread. */
type Send = (name: string, args: unknown, options?: CallOptions) => Promise<unknown>

interface SubjectOptions {
  /** The caller's own connection. */
  db: Database
  /** Call the functions of `scanFunctions` and `writeFunctions`. */
  callReader: Send
  callWriter: Send
  /**
   * Resolves when the other hosts of a cluster have applied a write that `callWriter` has just
   * resolved. Undefined, or absent: there is nothing to wait for.
   */
  whenAllApplied?(name: string, options?: CallOptions): Promise<void> | undefined
  /** Follow every committed write. */
  readers: readonly EventReader[]
}

/**
 * The operations of all subjects. A write resolves once its change is on disk and all readers know
 * it, in a cluster on all live hosts: a later request never sees what was before it. It
 * rejects, with nothing changed, if the disk refuses.
 */
export function openSubjects<All extends Subjects>(
  subjects: All,
  { db, callReader, callWriter, whenAllApplied, readers }: SubjectOptions,
): DataOf<All> {
  const data = mapValues(subjects, ({ reads, scans, writes }, subjectName) => {
    const callScan = (name: string) => (args: unknown, options?: CallOptions) =>
      callReader(callName(subjectName, name), args, options)
    const callWrite = (declared: WriteTable[string], name: string) => {
      const call = callName(subjectName, name)
      return async (command: unknown, options?: CallOptions) => {
        const message = declared.pack ? declared.pack(command as never) : command
        const packed = await callWriter(call, message, options)
        // Nothing may be awaited between the commit and its readers.
        const result = settle(declared, { packed, message }, readers)
        if (isDenied(result)) throw deniedError(result)
        const others = whenAllApplied?.(call, options)
        if (others) await others
        return result
      }
    }
    return Object.assign(
      reads(db) as object,
      mapValues(scans, (_, name) => callScan(name)),
      mapValues(writes, callWrite),
    )
  })
  return data as DataOf<All>
}

/** Tells the readers of a committed write, if it was not refused. Returns its result. */
function settle(
  declared: WriteTable[string],
  { packed, message }: { packed: unknown; message?: unknown },
  readers: readonly EventReader[],
): unknown {
  if (isDenied(packed)) return packed
  const result = declared.unpack ? declared.unpack(packed) : packed
  const events = declared.events?.(result, message) ?? []
  if (events.length > 0) for (const read of readers) read(events)
  return result
}

/** The name of an operation in messages between threads and in the log of a cluster. */
const callName = (subjectName: string, operation: string): string => `${subjectName}.${operation}`

/** All scans on a connection of the reader thread, by the names of their calls. */
export const scanFunctions = (subjects: Subjects, db: Database): NamedFunctions =>
  byCallName(subjects, ({ scans }) => mapValues(scans, (prepare) => prepare(db)))

/**
 * All writes on a connection of the writer thread, by the names of their calls. Without `onEvents`
 * of a subject, no event is made there: batches are as fast as without events.
 */
export function writeFunctions(subjects: Subjects, db: Database, host: WriterHost): NamedFunctions {
  const all = Object.values(subjects)
  const readers = all.flatMap(({ onEvents }) => onEvents?.(db) ?? [])
  const removals = all.flatMap(({ forget }) => forget.map((sql) => db.prepare(sql)))
  const context = {
    ...host,
    forgetAccount(id: number) {
      for (const removal of removals) removal.run(id)
    },
  }
  return byCallName(subjects, ({ writes }) =>
    mapValues(writes, (declared) => {
      const run = guarded(declared, db, context)
      if (!declared.events || readers.length === 0) return run
      return (message: never) => {
        const packed = run(message)
        const needed = readers.filter(({ isNeeded }) => isNeeded?.(message) ?? true)
        if (needed.length > 0) settle(declared, { packed, message }, needed)
        return packed
      }
    }),
  )
}

const authorCheckOn = perConnection(authorCheck)

/** The write, which a message of an author who may not do it does not reach. */
function guarded({ least, prepare }: WriteTable[string], db: Database, context: WriteContext) {
  const run = prepare(db, context)
  if (!least) return run
  const denialOf = authorCheckOn(db)
  return (message: never) => denialOf((message as Authored).author, least) ?? run(message)
}

/** All declared writes, by the names of their calls. */
export const writesOf = (subjects: Subjects): Readonly<WriteTable> =>
  byCallName(subjects, ({ writes }) => writes)

/** Tells the readers of writes that other hosts have made, by the names of their calls. */
export function eventsOfOthers(subjects: Subjects, readers: readonly EventReader[]) {
  const writes = writesOf(subjects)
  return (name: string, packed: unknown): void => {
    const declared = writes[name]
    if (declared) settle(declared, { packed }, readers)
  }
}

function byCallName<Value>(
  subjects: Subjects,
  select: (one: Subjects[string]) => Record<string, Value>,
): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(subjects).flatMap(([subjectName, one]) =>
      Object.entries(select(one)).map(([name, value]) => [callName(subjectName, name), value]),
    ),
  )
}

const mapValues = <Value, Result>(
  table: Record<string, Value>,
  convert: (value: Value, name: string) => Result,
): Record<string, Result> =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, convert(value, name)]))
