import { expect, test } from 'bun:test'
import { getPriority } from 'node:os'

const SOURCE = `
  import { readlinkSync } from 'node:fs'
  import { getPriority } from 'node:os'
  import { giveWay } from '${new URL('./priority.ts', import.meta.url).pathname}'
  giveWay()
  const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
  self.postMessage(getPriority(thread))
`

/** A suite that is nice itself leaves less to see: no thread may become less nice than it was. */
test('a thread that gives way is nice, and the others of its process are as before', async () => {
  const before = getPriority(process.pid)
  const source = new File([SOURCE], 'thread.js', { type: 'text/javascript' })
  const worker = new Worker(URL.createObjectURL(source))
  const priority = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data)
  })
  expect(priority).toBe(Math.max(15, before))
  expect(getPriority(process.pid)).toBe(before)
  worker.terminate()
})
