import { passwordFunctions } from '../accounts/passwords.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'

serveThread(() => {
  // A sign-in can wait, a redirect cannot.
  setThreadPriority('background')
  return functionService(passwordFunctions)
})
