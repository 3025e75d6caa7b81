import { stayBehind } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'
import { type RendererSettings, renderer } from '../qr/renderer.ts'

serveThread((settings: RendererSettings) => {
  // Redirects have priority over the thousands of images of a batch.
  stayBehind()
  const functions = renderer(settings)
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(functions, call))),
    close: () => {},
  }
})
