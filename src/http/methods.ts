interface Route {
  method: string
  path: string
}

/** The methods that a path answers, for `Allow`; HEAD comes with GET. Empty for an unknown path. */
export function methodsOf(routes: readonly Route[], path: string): string[] {
  const methods = new Set<string>()
  for (const route of routes) {
    if (!matches(route.path, path)) continue
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
  }
  return [...methods]
}

/**
 * A pattern's `:name` takes one segment that is not empty, `*` all that follow. A last slash counts
 * for nothing.
 */
function matches(pattern: string, path: string): boolean {
  const wanted = segments(pattern)
  const found = segments(path)
  if (wanted.at(-1) === '*') return wanted.slice(0, -1).every((name, i) => fits(name, found[i]))
  return wanted.length === found.length && wanted.every((name, i) => fits(name, found[i]))
}

function fits(name: string, segment: string | undefined): boolean {
  return name.startsWith(':') ? segment !== undefined && segment !== '' : name === segment
}

const segments = (path: string) => path.replace(/\/$/, '').split('/').slice(1)
