/**
 * The service in a process of its own, which can be killed, on clocks that its parent sets. Talks
 * to its parent alone: see service.ts.
 */

import { startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { clocksIn } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { secureRandom } from '../../src/lib/random.ts'
import type { FromParent, FromService } from './service.ts'

const tell = (message: FromService) => process.send?.(message)

const config = readConfig(process.env)
const memory = new SharedArrayBuffer(16)
const times = new Float64Array(memory)
times.set([Number(process.env.MODEL_NOW), Number(process.env.MODEL_ELAPSED)])
const app = await startApp(config, {
  ...clocksIn(memory),
  time: memory,
  random: secureRandom,
  log: createLog({
    level: 'error',
    human: false,
    write: (line) => process.stderr.write(line),
  }),
  journalEntries: 4096,
})

process.on('message', async (message: FromParent) => {
  if ('time' in message) {
    times.set([message.time.now, message.time.elapsed])
    return tell({ done: true })
  }
  await app.stopListening(0)
  await app.close()
  tell({ done: true })
  process.exit(0)
})
process.on('disconnect', () => process.exit(1))

tell({ port: app.port })
