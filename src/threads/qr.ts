import { stayBehind } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { type RendererSettings, renderer } from '../qr/renderer.ts'

serveThread((settings: RendererSettings) => {
  // Thousands of images may wait behind a bulk request; redirects must not.
  stayBehind()
  return functionService(renderer(settings))
})
