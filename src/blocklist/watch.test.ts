import { afterEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../lib/log.ts'
import { Blocklist } from './watch.ts'

/** Longer than any test: no look at the files happens by itself. */
const THREAD = new URL('../threads/blocklist.ts', import.meta.url)

const NEVER_MS = 3_600_000

interface Line {
  level: string
  event: string
  file: string
  entries?: number
  reason?: string
  entries_kept?: number
}

const ended: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end()
})

/** A folder of list files, and a log that can be waited for. */
function setting() {
  const folder = mkdtempSync(join(tmpdir(), 'blocklist-'))
  ended.push(() => rmSync(folder, { recursive: true }))
  const lines: Line[] = []
  let waiting: { wanted: (line: Line) => boolean; resolve: (line: Line) => void } | undefined
  const log = createLog({
    level: 'info',
    human: false,
    write: (text) => {
      const line = JSON.parse(text)
      lines.push(line)
      if (waiting?.wanted(line)) waiting.resolve(line)
    },
  })
  return {
    lines,
    path: (name: string) => join(folder, name),
    write: (name: string, content: string | Uint8Array) => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    },
    logged: (wanted: (line: Line) => boolean) =>
      new Promise<Line>((resolve) => {
        waiting = { wanted, resolve }
      }),
    open: async (files: string[], { ownHosts = [] as string[], intervalMs = NEVER_MS } = {}) => {
      const options = { files, ownHosts, log, thread: THREAD, intervalMs, clock: () => 42 }
      const blocklist = await Blocklist.open(options)
      ended.push(() => blocklist.close())
      return blocklist
    },
  }
}

const verdicts = (blocklist: Blocklist, ...hosts: string[]) =>
  hosts.map((host) => blocklist.isBlocked(new URL(`https://${host}/path`)))

describe('lists from files', () => {
  test('are active when open resolves, from several files of several formats', async () => {
    const { write, open, lines } = setting()
    const hosts = write('hosts', '0.0.0.0 one.example two.example\n')
    const rules = write('rules.txt', '||three.example^\n@@||fine.three.example^\n||com^\n')
    const urls = write('urlhaus.txt', '# URLhaus\nhttp://four.example/x\n')
    const blocklist = await open([hosts, rules, urls])
    expect(
      verdicts(blocklist, 'one.example', 'a.two.example', 'three.example', 'four.example'),
    ).not.toContain(false)
    expect(
      verdicts(blocklist, 'fine.three.example', 'x.fine.three.example', 'five.example', 'a.com'),
    ).not.toContain(true)
    expect(blocklist.state()).toEqual({
      entries: 4,
      loadedAt: 42,
      files: [
        { file: hosts, entries: 2, loadedAt: 42, error: null },
        { file: rules, entries: 1, loadedAt: 42, error: null },
        { file: urls, entries: 1, loadedAt: 42, error: null },
      ],
    })
    expect(lines.map(({ level, file }) => [level, file])).toEqual([
      ['info', hosts],
      ['info', rules],
      ['info', urls],
    ])
  })

  test('an exception of one file opens nothing that another file blocks', async () => {
    const { write, open } = setting()
    const blocklist = await open([
      write('one', '||bad.example^\n@@||fine.bad.example^\n'),
      write('two', 'fine.bad.example\n'),
    ])
    expect(verdicts(blocklist, 'bad.example', 'fine.bad.example')).toEqual([true, true])
  })

  test('without a file nothing is blocked, and nothing is logged', async () => {
    const { open, lines } = setting()
    const blocklist = await open([])
    expect(verdicts(blocklist, 'bad.example')).toEqual([false])
    expect(blocklist.state()).toEqual({ entries: 0, loadedAt: null, files: [] })
    expect(lines).toEqual([])
  })
})

describe('a file that changes', () => {
  test('replaces its own set and no other', async () => {
    const { write, open } = setting()
    const one = write('one', 'old.example\n')
    const blocklist = await open([one, write('two', 'other.example\n')])
    write('one', 'new.example\n')
    await blocklist.reload()
    expect(verdicts(blocklist, 'old.example', 'new.example', 'other.example')).toEqual([
      false,
      true,
      true,
    ])
  })

  test('is noticed without being told, also when it is renamed into place', async () => {
    const { write, path, open, logged, lines } = setting()
    const one = write('one', 'old.example\n')
    const two = write('two', 'other.example\n')
    const blocklist = await open([one, two], { intervalMs: 1 })
    const loaded = logged(({ file, entries }) => file === one && entries === 2)
    write('one.new', 'new.example\nnewer.example\n')
    renameSync(path('one.new'), one)
    await loaded
    expect(verdicts(blocklist, 'old.example', 'new.example')).toEqual([false, true])
    expect(lines.filter(({ file }) => file === two)).toHaveLength(1)
  })

  test('is read only when two looks have found it alike: half a list is none', async () => {
    const { write, open } = setting()
    const blocklist = await open([write('list', 'old.example\n')])
    const wanted = ['old.example', 'new.example', 'newer.example']
    for (const half of ['', 'new.example\n', 'new.example\nnewer.exam']) {
      write('list', half)
      await blocklist.checkFiles()
      expect([half, ...verdicts(blocklist, ...wanted)]).toEqual([half, true, false, false])
    }
    write('list', 'new.example\nnewer.example\n')
    await blocklist.checkFiles()
    await blocklist.checkFiles()
    expect(verdicts(blocklist, ...wanted)).toEqual([false, true, true])
  })

  test('that has not changed is not read again', async () => {
    const { write, open, lines } = setting()
    const blocklist = await open([write('list', 'bad.example\n')])
    for (let checks = 0; checks < 5; checks++) await blocklist.checkFiles()
    expect(lines).toHaveLength(1)
  })

  test('that was missing at the start is reported as an error and read when it appears', async () => {
    const { write, path, open, logged, lines } = setting()
    const late = path('late')
    const blocklist = await open([late, write('two', 'other.example\n')], { intervalMs: 1 })
    expect(lines[0]).toMatchObject({ level: 'error', file: late, entries_kept: 0 })
    expect(lines[0]?.reason).toContain('ENOENT')
    expect(verdicts(blocklist, 'late.example', 'other.example')).toEqual([false, true])
    const loaded = logged(({ file, level }) => file === late && level === 'info')
    write('late', 'late.example\n')
    await loaded
    expect(verdicts(blocklist, 'late.example')).toEqual([true])
    expect(blocklist.state().files[0]).toMatchObject({ error: null, entries: 1 })
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  const broken = [
    { name: 'binary', content: Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1]), reason: 'binary' },
    { name: 'prose', content: 'Too many requests.\n', reason: 'no entry' },
    { name: 'a web page', content: '<html>\nbad.example\n', reason: 'web page' },
  ]
  test.each(broken)('into $name keeps the last good set and logs it once', async (change) => {
    const { write, open, lines } = setting()
    const file = write('list', 'bad.example\n')
    const blocklist = await open([file])
    write('list', change.content)
    await blocklist.reload()
    await blocklist.reload()
    expect(verdicts(blocklist, 'bad.example')).toEqual([true])
    expect(blocklist.state()).toMatchObject({ entries: 1, loadedAt: 42 })
    expect(blocklist.state().files[0]?.error).toContain(change.reason)
    const errors = lines.filter(({ level }) => level === 'error')
    expect(errors).toMatchObject([{ file, entries_kept: 1 }])
    expect(errors[0]?.reason).toContain(change.reason)

    write('list', 'worse.example\n')
    await blocklist.reload()
    expect(verdicts(blocklist, 'bad.example', 'worse.example')).toEqual([false, true])
    expect(blocklist.state().files[0]?.error).toBeNull()

    write('list', change.content)
    await blocklist.reload()
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(2)
  })

  test('into nothing, a folder or an empty list: only the empty list unblocks', async () => {
    const { write, open } = setting()
    const file = write('list', 'bad.example\n')
    const blocklist = await open([file])
    rmSync(file)
    await blocklist.reload()
    expect(verdicts(blocklist, 'bad.example')).toEqual([true])
    expect(blocklist.state().files[0]?.error).toContain('ENOENT')

    mkdirSync(file)
    await blocklist.reload()
    expect(verdicts(blocklist, 'bad.example')).toEqual([true])
    expect(blocklist.state().files[0]?.error).toBe('is not a regular file')
    rmSync(file, { recursive: true })

    write('list', '# nothing to block today\n')
    await blocklist.reload()
    expect(verdicts(blocklist, 'bad.example')).toEqual([false])
    expect(blocklist.state().files[0]).toMatchObject({ entries: 0, error: null })
  })

  test.skipIf(process.platform !== 'linux')('that fails while it is read says so', async () => {
    const { write, open, lines } = setting()
    // The kernel refuses to read the first page of a process's memory.
    const blocklist = await open(['/proc/self/mem', write('list', 'bad.example\n')])
    expect(blocklist.state().files[0]?.error).toStartWith('cannot be read: ')
    expect(lines[0]).toMatchObject({ level: 'error', file: '/proc/self/mem' })
    expect(verdicts(blocklist, 'bad.example')).toEqual([true])
  })

  test('that ends the thread that reads it fails alone: the next is read on a new one', async () => {
    const { write, open } = setting()
    const files = ['one', 'fatal', 'two'].map((name) => write(name, `${name}.example\n`))
    const { Worker } = globalThis
    globalThis.Worker = class extends Worker {
      override postMessage(message: unknown) {
        if (JSON.stringify(message).includes('fatal')) this.terminate()
        else super.postMessage(message)
      }
    }
    ended.push(() => {
      globalThis.Worker = Worker
    })
    const blocklist = await open(files)
    expect(blocklist.state().files.map(({ error }) => error)).toEqual([
      null,
      expect.stringContaining('a worker thread ended'),
      null,
    ])
    expect(verdicts(blocklist, 'one.example', 'two.example')).toEqual([true, true])
  })

  test('that is gone, back and gone again is reported twice', async () => {
    const { write, open, lines } = setting()
    const file = write('list', 'bad.example\n')
    const blocklist = await open([file])
    for (let round = 0; round < 2; round++) {
      rmSync(file)
      await blocklist.reload()
      write('list', 'bad.example\n')
      await blocklist.reload()
    }
    expect(lines.map(({ level }) => level)).toEqual(['info', 'error', 'info', 'error', 'info'])
  })

  test('many reloads at once follow one another and end with the newest content', async () => {
    const { write, open, lines } = setting()
    const other = write('other', 'other.example\n')
    const list = write('list', 'old.example\n')
    const blocklist = await open([list, other])
    const reloads = Array.from({ length: 5 }, (_, i) => {
      write('list', `new${i}.example\n`)
      return blocklist.reload()
    })
    await Promise.all(reloads)
    expect(lines.map(({ file }) => file)).toEqual(Array(6).fill([list, other]).flat())
    expect(verdicts(blocklist, 'old.example', 'new4.example')).toEqual([false, true])
    expect(blocklist.state().entries).toBe(2)
  })

  test('after close is not read any more, and the last sets still judge', async () => {
    const { write, open } = setting()
    const blocklist = await open([write('list', 'old.example\n')])
    await blocklist.close()
    write('list', 'new.example\n')
    await blocklist.reload()
    expect(verdicts(blocklist, 'old.example', 'new.example')).toEqual([true, false])
  })
})

describe('our own hosts', () => {
  const ownHosts = ['https://hop.example/base', 'http://cdn.hop.example:8080', 'http://192.0.2.7']
  test('are exactly those, however they are written, with any port and scheme', async () => {
    const { open } = setting()
    const blocklist = await open([], { ownHosts })
    const isBlocked = (url: string) => blocklist.isBlocked(new URL(url))
    const ours = `http://hop.example/ https://HOP.example.:9999/x https://user@ｈｏｐ.example/
      http://cdn.hop.example/qr/A.png https://cdn.hop.example:1/ http://192.0.2.7:3000/
      http://3221225991/ http://[::ffff:192.0.2.7]/`.split(/\s+/)
    const others = `https://www.hop.example/ https://shop.example/ https://hop.example.test/
      https://example/ https://fine.example/?u=https://hop.example/ http://localhost/`.split(/\s+/)
    expect(ours.filter((url) => !isBlocked(url))).toEqual([])
    expect(others.filter(isBlocked)).toEqual([])
  })

  test('localhost is all its names: they all lead to this machine', async () => {
    const { open } = setting()
    const blocklist = await open([], { ownHosts: ['http://localhost:3000', 'http://[::1]:3000'] })
    for (const host of ['localhost', 'LOCALHOST.:1', 'x.localhost', '[0:0:0:0:0:0:0:1]']) {
      expect(blocklist.isBlocked(new URL(`http://${host}/`))).toBe(true)
    }
    for (const host of ['notlocalhost', 'localhost.example', '[::2]']) {
      expect(blocklist.isBlocked(new URL(`http://${host}/`))).toBe(false)
    }
  })

  test('stay blocked whatever a list exempts', async () => {
    const { write, open } = setting()
    const list = write('list', 'bad.example\n@@||hop.example^\n')
    const blocklist = await open([list], { ownHosts })
    expect(verdicts(blocklist, 'hop.example')).toEqual([true])
  })
})
