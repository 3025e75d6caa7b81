import { destinationChecks } from '../checks/task.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { type OpenTask, type OutgoingSettings, serveTasks } from '../outgoing/thread.ts'
import { openWebhooks } from '../webhooks/task.ts'

/** What sends requests to the outside, by the names for `Outgoing.wake`. */
const TASKS: Record<string, OpenTask> = { checks: destinationChecks, webhooks: openWebhooks }

serveThread((settings: OutgoingSettings) => {
  // Receivers wait; a redirect cannot.
  setThreadPriority('background')
  const { functions, close } = serveTasks(TASKS, settings)
  return functionService(functions, close)
})
