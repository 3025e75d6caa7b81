declare module '*.wasm' {
  /** Where the file is, also in the binary. */
  const path: string
  export = path
}
