import { functionService, serveThread } from '../lib/thread.ts'
import { type RedirectSettings, RedirectThread } from '../redirect/thread.ts'

/** Answers redirects, and forwards everything else to the control thread. */
serveThread((settings: RedirectSettings) => {
  const thread = new RedirectThread(settings)
  return functionService(thread.functions, () => thread.close())
})
