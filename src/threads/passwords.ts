import { passwordFunctions } from '../accounts/passwords.ts'
import { stayBehind } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'

serveThread(() => {
  // A sign-in can wait; redirects must not.
  stayBehind()
  return functionService(passwordFunctions)
})
