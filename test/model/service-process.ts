/**
 * The service in a process of its own, which can be killed, on clocks that its parent sets. Talks
 * to its parent alone: see service.ts.
 */

import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/lib/log.ts'
import { secureRandom } from '../../src/lib/random.ts'
import type { FromParent, FromService } from './service.ts'

const tell = (message: FromService) => process.send?.(message)

const config = readConfig(process.env)
const time = { now: Number(process.env.MODEL_NOW), elapsed: Number(process.env.MODEL_ELAPSED) }
const app = await buildApp(config, {
  clock: () => time.now,
  monotonic: () => time.elapsed,
  random: secureRandom,
  log: createLog({
    level: 'error',
    human: false,
    write: (line) => process.stderr.write(line),
  }),
  journalEntries: 4096,
})
app.http.listen({ hostname: config.host, port: 0 })

process.on('message', async (message: FromParent) => {
  if ('time' in message) {
    Object.assign(time, message.time)
    return tell({ done: true })
  }
  await app.http.server?.stop(true)
  await app.close()
  tell({ done: true })
  process.exit(0)
})
process.on('disconnect', () => process.exit(1))

tell({ port: app.http.server?.port ?? 0 })
