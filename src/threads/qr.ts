import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { type RendererSettings, renderer } from '../qr/renderer.ts'

serveThread((settings: RendererSettings) => {
  // A bulk request may queue thousands of images, and redirects must not wait for them.
  setThreadPriority('background')
  return functionService(renderer(settings))
})
