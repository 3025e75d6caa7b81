import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { type RendererSettings, renderer } from '../qr/renderer.ts'

serveThread((settings: RendererSettings) => {
  // A bulk request may queue thousands of images, for which redirects must not wait.
  setThreadPriority('background')
  return functionService(renderer(settings))
})
