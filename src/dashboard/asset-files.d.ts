declare module '*.css' {
  const text: string
  export = text
}

declare module '*/dashboard.js' {
  const text: string
  export = text
}

declare module '*.ico' {
  const path: string
  export = path
}

declare module '*/qr.js' {
  const text: string
  export = text
}

declare module '*/charts.js' {
  const text: string
  export = text
}

declare module '*/link.js' {
  const text: string
  export = text
}

declare module '*/list.js' {
  const text: string
  export = text
}

declare module '*.svg' {
  const text: string
  export = text
}

declare module 'htmx.org/dist/htmx.min.js' {
  const text: string
  export = text
}

declare module '*.woff2' {
  const path: string
  export = path
}
