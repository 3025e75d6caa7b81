import { runCall, serveThread } from '../lib/thread.ts'
import { type RendererSettings, renderer } from './renderer.ts'

serveThread((settings: RendererSettings) => {
  const functions = renderer(settings)
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(functions, call))),
    close: () => {},
  }
})
