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

test('a thread that gives way is nice, and the others of its process are not', async () => {
  const source = new File([SOURCE], 'thread.js', { type: 'text/javascript' })
  const worker = new Worker(URL.createObjectURL(source))
  const priority = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data)
  })
  expect(priority).toBe(15)
  expect(getPriority(process.pid)).toBeLessThan(15)
  worker.terminate()
})
