import { stayBehind } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'
import { type RendererSettings, renderer } from '../qr/renderer.ts'

serveThread((settings: RendererSettings) => {
  // Thousands of images may wait behind a bulk request; redirects must not.
  stayBehind()
  const functions = renderer(settings)
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(functions, call))),
    close: () => {},
  }
})
