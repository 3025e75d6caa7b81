/**
 * Builds the program in two different folders and compares the bytes. Exits with 1 if they differ.
 * Takes about ten seconds.
 */
import { cpSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = dirname(import.meta.dir)
const INPUTS = ['src', 'drizzle', 'scripts', 'package.json', 'tsconfig.json', 'bunfig.toml']
/** In dist/, because hard links to the packages need the same file system. */
const FOLDER = join(ROOT, 'dist', `reproducible-${process.pid}`)
const PLACES = [
  { folder: join(FOLDER, 'a'), env: { TZ: 'UTC', LANG: 'C' } },
  { folder: join(FOLDER, 'a/much/deeper/place'), env: { TZ: 'Asia/Tokyo', LANG: 'tr_TR.UTF-8' } },
]

/** A separate node_modules instead of a link to one: the source map contains real paths. */
function hardLink(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) hardLink(source, target)
    else if (entry.isSymbolicLink()) cpSync(source, target, { verbatimSymlinks: true })
    else linkSync(source, target)
  }
}

function build({ folder, env }: (typeof PLACES)[number]): Buffer {
  for (const name of INPUTS) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  hardLink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const built = Bun.spawnSync([process.execPath, 'scripts/build.ts'], {
    cwd: folder,
    env: { ...process.env, ...env },
  })
  if (built.exitCode !== 0) throw new Error(`the build failed: ${built.stderr}`)
  process.stdout.write(built.stdout)
  return readFileSync(join(folder, 'dist', 'hopcode'))
}

try {
  const [first, second] = PLACES.map(build) as [Buffer, Buffer]
  const isSame = first.equals(second)
  const differs = first.findIndex((byte, at) => byte !== second[at])
  console.log(isSame ? 'The same bytes.' : `They differ from byte ${differs} on.`)
  process.exitCode = isSame ? 0 : 1
} finally {
  rmSync(FOLDER, { recursive: true, force: true })
}
