/** package.json, bun.lock, docs/dependencies.md and the installed packages agree. No network. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  folderOf,
  type Locked,
  listLicences,
  placesInProgram,
  readLock,
  type Versions,
} from '../scripts/licences.ts'

const ROOT = join(import.meta.dir, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

interface Manifest {
  dependencies: Versions
  optionalDependencies: Versions
  devDependencies: Versions
  trustedDependencies: string[]
}

const manifest = JSON.parse(read('package.json')) as Manifest
const page = read('docs/dependencies.md')
const lock = readLock()

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
  const needed = placesInProgram()
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
  const needed = placesInProgram()
  expect(needed.length).toBeGreaterThan(40)
  const found = needed.map((place) => {
    const { license } = JSON.parse(read(`${folderOf(place)}/package.json`)) as {
      license: string
    }
    return { place, license }
  })
  expect(found.filter(({ license }) => !allowed.includes(license))).toEqual([])
})

test('the licences of a release name each package of bun.lock that the program needs', () => {
  const listed = listLicences()
  const needed = placesInProgram().map((place) => lock.get(place)?.[0])
  expect(listed.map(({ of }) => of)).toEqual(expect.arrayContaining(needed as string[]))
  // The program itself, the runtime and the list of passwords.
  expect(listed).toHaveLength(needed.length + 3)
  for (const { of, name, text } of listed) {
    expect([of, name]).toEqual([of, expect.stringMatching(/\w/)])
    if (text !== undefined) expect(text.length).toBeGreaterThan(200)
  }
  const withoutText = listed.filter(({ text }) => text === undefined).map(({ of }) => of)
  expect(withoutText.map((of) => of.replace(/@[^@]+$/, ''))).toEqual(WITHOUT_TEXT)
})

/** Packages without a file of their licence. Their authors name it in package.json only. */
const WITHOUT_TEXT = [
  '@scalar/openapi-types',
  'empty-npm-package',
  '@tokenizer/token',
  'drizzle-orm',
  'zhead',
]

test('each package with a file in the program has its licence in a release', async () => {
  const { metafile } = await Bun.build({
    entrypoints: ['src/main.ts', ...new Bun.Glob('src/threads/*.ts').scanSync(ROOT)].map((file) =>
      join(ROOT, file),
    ),
    target: 'bun',
    metafile: true,
  })
  const folders = Object.keys(metafile?.inputs ?? {}).flatMap(
    (path) => /^.*(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [],
  )
  const inProgram = [...new Set(folders)]
  expect(inProgram.length).toBeGreaterThan(20)
  const listed = new Set(placesInProgram().map(folderOf))
  expect(inProgram.filter((folder) => !listed.has(folder))).toEqual([])
})
