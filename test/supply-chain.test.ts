/** package.json, bun.lock, docs/dependencies.md and the installed packages agree. No network. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

type Versions = Record<string, string>

interface Manifest {
  dependencies: Versions
  optionalDependencies: Versions
  devDependencies: Versions
  trustedDependencies: string[]
}

/** An entry of bun.lock: name and version, registry, facts, and the hash of the contents. */
type Locked = [
  nameAndVersion: string,
  registry: string,
  facts: { dependencies?: Versions; hasInstallScript?: boolean },
  integrity: string,
]

const manifest = JSON.parse(read('package.json')) as Manifest
const page = read('docs/dependencies.md')
/** By the place of a package: `qrcode/pngjs` is the one that `qrcode` needs. */
const lock = new Map<string, Locked>(
  // The file is JSON with trailing commas.
  Object.entries(
    (JSON.parse(read('bun.lock').replaceAll(/,(\s*[}\]])/g, '$1')) as { packages: object })
      .packages,
  ),
)

const GROUPS = {
  'In the program': manifest.dependencies,
  'Bun itself': manifest.optionalDependencies,
  'In development and tests': manifest.devDependencies,
}

/** The rows of the table under a heading, as cells without markup. */
function rowsUnder(heading: string): string[][] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  const lines = (section.split('\n## ')[0] ?? '').split('\n')
  const rows = lines.filter((line) => line.startsWith('| `'))
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

test.each(Object.entries(GROUPS))(
  'docs/dependencies.md, %s: exactly the packages of package.json, each with a reason',
  (heading, group) => {
    const rows = rowsUnder(heading)
    expect(rows.map(([name]) => name)).toEqual(Object.keys(group))
    for (const [, reason] of rows) expect(reason).not.toBe('')
  },
)

test('bun.lock has every direct dependency in the version that package.json names', () => {
  for (const group of Object.values(GROUPS)) {
    for (const [name, version] of Object.entries(group)) {
      expect(lock.get(name)?.[0]).toBe(`${name}@${version}`)
    }
  }
})

test('no install script is run: package.json trusts none, and the page lists each of them', () => {
  // Not absent: then Bun would run the scripts of its own list.
  expect(manifest.trustedDependencies).toEqual([])
  const scripted = [...lock.values()].filter(([, , { hasInstallScript }]) => hasInstallScript)
  const names = scripted.map(([nameAndVersion]) => nameAndVersion.replace(/@[^@]*$/, ''))
  const named = rowsUnder('Install scripts').map(([name]) => name?.split(' ')[0])
  expect(named).toEqual([...new Set(names)])
})

test('no package in the program has an install script, whichever client installs it', () => {
  const needed = placesNeededBy(Object.keys(manifest.dependencies))
  const locked = needed.map((place) => lock.get(place) as Locked)
  expect(locked.filter(([, , { hasInstallScript }]) => hasInstallScript)).toEqual([])
  // The name of a package that reports each installation to a company has an empty package.
  expect(needed).toContain('@scarf/scarf')
  expect(locked.filter(([name]) => name.startsWith('@scarf/'))).toEqual([])
})

test('images are named with their registry: not every program knows a default one', () => {
  const texts = [
    'Dockerfile',
    'docs/operations/compose.yaml',
    'docs/operations/caddy-compose.yaml',
    'docs/operations/cluster-compose.yaml',
  ]
  const images = texts.flatMap((path) =>
    [...read(path).matchAll(/^(?:FROM|\s*image:)\s+(\S+)/gm)].map(([, name = '']) => name),
  )
  expect(images.length).toBeGreaterThan(4)
  // The image that is built here.
  const others = images.filter((name) => name !== 'hopcode')
  expect(others.filter((name) => !/^[\w.-]+\.[a-z]+\/\S+:\S+$/.test(name))).toEqual([])
})

test('every package of bun.lock has the SHA-512 of its contents', () => {
  expect(lock.size).toBeGreaterThan(100)
  for (const [, , , integrity] of lock.values()) {
    expect(integrity).toMatch(/^sha512-[\w+/]{86}==$/)
  }
})

test('the packages in the program have permissive licences', () => {
  const allowed = [
    'MIT',
    'ISC',
    '0BSD',
    'Unlicense',
    'Apache-2.0',
    'BSD-3-Clause',
    'BlueOak-1.0.0',
    '(MIT OR CC0-1.0)',
    // For fonts, which may be embedded in any program.
    'OFL-1.1',
    'MIT AND OFL-1.1',
  ]
  const needed = placesNeededBy(Object.keys(manifest.dependencies))
  expect(needed.length).toBeGreaterThan(40)
  const found = needed.map((place) => {
    const folder = place.replaceAll(/(?<!^@[^/]*|\/@[^/]*)\//g, '/node_modules/')
    const { license } = JSON.parse(read(`node_modules/${folder}/package.json`)) as {
      license: string
    }
    return { place, license }
  })
  expect(found.filter(({ license }) => !allowed.includes(license))).toEqual([])
})

/** The places in bun.lock of these packages and of all that they need. */
function placesNeededBy(names: readonly string[]): string[] {
  const places = new Set<string>()
  const add = (place: string) => {
    if (places.has(place)) return
    places.add(place)
    const [, , facts] = lock.get(place) as Locked
    for (const name of Object.keys(facts.dependencies ?? {})) {
      const nested = `${place}/${name}`
      add(lock.has(nested) ? nested : name)
    }
  }
  for (const name of names) add(name)
  return [...places]
}
