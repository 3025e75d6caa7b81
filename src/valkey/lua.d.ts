declare module '*.lua' {
  const text: string
  export = text
}
