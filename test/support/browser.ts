import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { install } from './debian.ts'

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome']
const PLACES = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/opt/google/chrome/chrome',
  '/snap/bin/chromium',
]

/** The browser starts as root, and does nothing over the network on its own account. */
export const BROWSER_FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * The path of a Chromium or Chrome: what `CHROMIUM` names, else one that is installed. As root on a
 * Debian-like machine without one, it is installed once. Throws an error that says what to do.
 */
export function findBrowser(): string {
  const named = process.env.CHROMIUM
  if (named) {
    if (existsSync(named)) return named
    throw new Error(`CHROMIUM names ${named}, and there is no such file.`)
  }
  const found = installed()
  if (found) return found
  install('chromium', 'fonts-liberation')
  const now = installed()
  if (now) return now
  throw new Error(
    'This test needs a browser: install chromium (Debian: apt-get install chromium) or Google ' +
      'Chrome, or set CHROMIUM to the path of one.',
  )
}

function installed(): string | undefined {
  for (const name of PROGRAMS) {
    const path = Bun.which(name)
    if (path) return path
  }
  return PLACES.find((path) => existsSync(path)) ?? playwrightsOwn()
}

/** What `npx playwright install chromium` has put in its cache. */
function playwrightsOwn(): string | undefined {
  const cache =
    process.env.PLAYWRIGHT_BROWSERS_PATH ?? join(process.env.HOME ?? '/', '.cache/ms-playwright')
  if (!existsSync(cache)) return undefined
  const [path] = [
    ...new Bun.Glob('chromium-*/chrome-linux*/chrome').scanSync({ cwd: cache }),
  ].sort()
  return path && join(cache, path)
}
