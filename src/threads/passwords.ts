import { passwordFunctions } from '../accounts/password-hash.ts'
import { stayBehind } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'

serveThread(() => {
  // A sign-in can wait; redirects must not.
  stayBehind()
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(passwordFunctions, call))),
    close: () => {},
  }
})
