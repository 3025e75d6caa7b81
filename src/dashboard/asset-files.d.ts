/** Files in the program: their text, or with `{ type: 'file' }` their path, also in the binary. */

declare module '*.css' {
  const textOrPath: string
  export = textOrPath
}

declare module '*.js' {
  const textOrPath: string
  export = textOrPath
}

declare module '*.svg' {
  const text: string
  export = text
}

declare module '*.png' {
  const path: string
  export = path
}

declare module '*.ico' {
  const path: string
  export = path
}

declare module '*.woff2' {
  const path: string
  export = path
}
