/** With `{ type: 'file' }`: the path, also in the binary. */
declare module '*.ttf' {
  const path: string
  export = path
}
