/** package.json, bun.lock, docs/dependencies.md and the bill of materials agree. No network. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  billOfMaterials,
  closure,
  type LockedPackage,
  readLock,
  readManifest,
} from '../scripts/sbom.ts'

const ROOT = join(import.meta.dir, '..')
const manifest = readManifest()
const lock = readLock()
const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')
const bill = billOfMaterials()

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
    for (const [name, version] of Object.entries(group))
      expect(lock.get(name)?.version).toBe(version)
  }
})

test('no install script is run: package.json trusts none, and the page lists each of them', () => {
  // Not absent: then Bun would run the scripts of its own list.
  expect(manifest.trustedDependencies).toEqual([])
  const scripted = [...lock.values()].filter(({ hasInstallScript }) => hasInstallScript)
  const named = rowsUnder('Install scripts').map(([name]) => name?.split(' ')[0])
  expect(named).toEqual([...new Set(scripted.map(({ name }) => name))])
})

test('every package of bun.lock has the SHA-512 of its contents', () => {
  expect(lock.size).toBeGreaterThan(100)
  for (const { integrity } of lock.values()) expect(integrity).toMatch(/^sha512-[\w+/]{86}==$/)
})

/** The required structure: https://cyclonedx.org/docs/1.6/json/ */
test('the bill of materials has the structure of CycloneDX 1.6', () => {
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 })
  expect(bill.serialNumber).toMatch(
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  const all = [bill.metadata.component, ...bill.components]
  const refs = all.map((component) => component['bom-ref'])
  expect(new Set(refs).size).toBe(refs.length)
  for (const component of all) {
    expect(component.name).not.toBe('')
    expect(component.version).toMatch(/^\d+\.\d+\.\d+/)
    expect(['application', 'platform', 'library']).toContain(component.type)
    expect(component.purl).toMatch(/^pkg:(npm|generic|github)\/[\w.%/-]+@[\w.-]+$/)
    expect(component.licenses).toHaveLength(1)
    const [licence] = component.licenses
    expect(licence && ('expression' in licence ? licence.expression : licence.license.id)).toMatch(
      /^[\w.+ ()-]+$/,
    )
    for (const { alg, content } of 'hashes' in component ? component.hashes : []) {
      expect([alg, content]).toEqual(['SHA-512', expect.stringMatching(/^[0-9a-f]{128}$/)])
    }
  }
  expect(bill.dependencies.map(({ ref }) => ref).toSorted()).toEqual(refs.toSorted())
  for (const { dependsOn } of bill.dependencies) {
    expect(new Set(dependsOn).size).toBe(dependsOn.length)
    for (const ref of dependsOn) expect(refs).toContain(ref)
  }
})

test('the bill lists the program, Bun, and exactly the packages that the program needs', () => {
  expect(bill.metadata.component).toMatchObject({ name: 'hopcode', version: manifest.version })
  const names = bill.components.map((component) => component['bom-ref'])
  expect(names).toContain(manifest.packageManager)
  const ref = ({ name, version }: LockedPackage) => `${name}@${version}`
  const runtime = [
    ...Object.keys(manifest.dependencies),
    ...Object.keys(manifest.optionalDependencies),
  ]
  const expected = new Set([manifest.packageManager, ...closure(lock, runtime).map(ref)])
  expect(names.toSorted()).toEqual([...expected].toSorted())
  // The version that is in the program: qrcode has its own pngjs, the tests use another.
  expect(names).toContain(ref(lock.get('qrcode/pngjs') as LockedPackage))
  for (const name of Object.keys(manifest.devDependencies)) {
    expect(names).not.toContain(ref(lock.get(name) as LockedPackage))
  }
  expect(billOfMaterials()).toEqual(bill)
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
  ]
  const found = bill.components.flatMap(({ name, licenses }) =>
    licenses.map((one) => ({
      name,
      licence: 'expression' in one ? one.expression : one.license.id,
    })),
  )
  expect(found.filter(({ licence }) => !allowed.includes(licence ?? ''))).toEqual([])
})
