import { passwordFunctions } from '../accounts/password-hash.ts'
import { stayBehind } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'

serveThread(() => {
  // Redirects have priority over sign-ins.
  stayBehind()
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(passwordFunctions, call))),
    close: () => {},
  }
})
