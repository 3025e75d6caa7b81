declare module 'swagger-ui-dist/*' {
  const path: string
  export = path
}

declare module '*/start.js' {
  const text: string
  export = text
}
