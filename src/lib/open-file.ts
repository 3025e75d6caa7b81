import { closeSync, openSync } from 'node:fs'

/** Opens a file until the end of a block: `using file = openFile(path, 'r')`. */
export function openFile(...[path, flags, mode]: Parameters<typeof openSync>) {
  const descriptor = openSync(path, flags, mode)
  return { descriptor, [Symbol.dispose]: () => closeSync(descriptor) }
}
