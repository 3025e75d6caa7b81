import { passwordFunctions } from '../accounts/password-hash.ts'
import { stayBehind } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'

serveThread(() => {
  // A sign-in can wait; redirects must not.
  stayBehind()
  return functionService(passwordFunctions)
})
