/** With `{ type: 'file' }`: the path, also in the binary. */
declare module '*.outlines' {
  const path: string
  export = path
}
