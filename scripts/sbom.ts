/**
 * Writes dist/sbom.json: the components of the program as a CycloneDX 1.6 bill of materials, from
 * package.json, bun.lock and the licences in node_modules. The same input gives the same bytes.
 * With --list, prints a table of the packages that package.json names instead.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = dirname(import.meta.dir)
const OUT = 'dist/sbom.json'
/** Bun, whose runtime is in every binary. */
const BUN_PACKAGE = /^@oven\/bun-/
/** An SPDX identifier has no spaces; a licence with spaces is an SPDX expression. */
const SPDX_ID = /^[\w.+-]+$/

type Names = Record<string, string>

export interface Manifest {
  name: string
  version: string
  description: string
  license: string
  packageManager: string
  trustedDependencies?: string[]
  dependencies: Names
  devDependencies: Names
  optionalDependencies: Names
}

interface Requirements {
  dependencies?: Names
  optionalDependencies?: Names
  peerDependencies?: Names
  optionalPeers?: string[]
  hasInstallScript?: boolean
}

/** Name and version, URL of the tarball (empty for the default one), requirements, integrity. */
type Entry = [id: string, tarball: string, requirements: Requirements, integrity: string]

export interface LockedPackage {
  /** Its place in node_modules: `qrcode/pngjs` is the pngjs that only qrcode uses. */
  key: string
  name: string
  version: string
  /** Of the packed package, as `sha512-` and base64. */
  integrity: string
  hasInstallScript: boolean
  /** Keys of the packages that it needs at run time. */
  needs: string[]
}

export const readManifest = (root = ROOT): Manifest =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Every package of bun.lock by its key. Throws if a package that one needs is missing. */
export function readLock(root = ROOT): Map<string, LockedPackage> {
  const lock = Bun.JSONC.parse(readFileSync(join(root, 'bun.lock'), 'utf8')) as {
    packages: Record<string, Entry>
  }
  const keys = new Set(Object.keys(lock.packages))
  const locked = Object.entries(lock.packages).map(([key, [id, , requirements, integrity]]) => {
    const at = id.lastIndexOf('@')
    const required = Object.keys(requirements.peerDependencies ?? {}).filter(
      (name) => !requirements.optionalPeers?.includes(name),
    )
    const needs = [...Object.keys(requirements.dependencies ?? {}), ...required].map((name) => {
      const found = resolve(keys, key, name)
      if (found === undefined) throw new Error(`bun.lock has no ${name} for ${key}`)
      return found
    })
    // The file may omit optional packages of other platforms.
    const optional = Object.keys(requirements.optionalDependencies ?? {})
    needs.push(...optional.flatMap((name) => resolve(keys, key, name) ?? []))
    const { hasInstallScript = false } = requirements
    const [name, version] = [id.slice(0, at), id.slice(at + 1)]
    return { key, name, version, integrity, hasInstallScript, needs: [...new Set(needs)].sort() }
  })
  return new Map(locked.map((entry) => [entry.key, entry]))
}

/** The key of `name` as required by the package at `key`: nested in it, or in a parent. */
function resolve(keys: ReadonlySet<string>, key: string, name: string): string | undefined {
  const parts = key.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []
  for (let length = parts.length; length >= 0; length--) {
    const candidate = [...parts.slice(0, length), name].join('/')
    if (keys.has(candidate)) return candidate
  }
  return undefined
}

/** The packages of `keys` and all that they need, transitively, in the order of their keys. */
export function closure(
  lock: ReadonlyMap<string, LockedPackage>,
  keys: readonly string[],
): LockedPackage[] {
  const reached = new Map<string, LockedPackage>()
  const waiting = [...keys]
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    const found = lock.get(key)
    if (!found) throw new Error(`bun.lock has no ${key}`)
    if (reached.has(key)) continue
    reached.set(key, found)
    waiting.push(...found.needs)
  }
  return [...reached.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** The SPDX licence in the installed package.json; undefined if it is not installed. */
export function licenceOf(key: string, root = ROOT): string | undefined {
  const parts = key.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []
  const folder = parts.map((part) => `node_modules/${part}`).join('/')
  try {
    return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')).license
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The bill of materials. Throws if a package has no licence or is not installed. */
export function billOfMaterials(root = ROOT) {
  const manifest = readManifest(root)
  const lock = readLock(root)
  const bunVersion = manifest.packageManager.replace(/^bun@/, '')
  const platforms = Object.keys(manifest.optionalDependencies).filter((name) =>
    BUN_PACKAGE.test(name),
  )
  const program = refOf(manifest)
  const bun = `bun@${bunVersion}`
  const direct = Object.keys(manifest.dependencies)
  const libraries = unique(closure(lock, direct))
  const runtimes = unique(closure(lock, platforms))
  const refs = (keys: readonly string[]) => keys.map((key) => refOf(get(lock, key)))
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(readFileSync(join(root, 'bun.lock')), manifest.version)}`,
    version: 1,
    metadata: {
      lifecycles: [{ phase: 'build' }],
      component: {
        type: 'application',
        'bom-ref': program,
        name: manifest.name,
        version: manifest.version,
        description: manifest.description,
        licenses: licences(manifest.license),
        purl: `pkg:generic/${manifest.name}@${manifest.version}`,
      },
    },
    components: [
      {
        type: 'platform',
        'bom-ref': bun,
        name: 'bun',
        version: bunVersion,
        description: 'The runtime in the binary; it includes SQLite.',
        licenses: licences('MIT'),
        purl: `pkg:github/oven-sh/bun@bun-v${bunVersion}`,
      },
      ...libraries.map((library) => component(library, 'library', 'required', root)),
      ...runtimes.map((runtime) => component(runtime, 'platform', 'optional', root)),
    ],
    dependencies: [
      { ref: program, dependsOn: [bun, ...refs(direct)] },
      { ref: bun, dependsOn: refs(platforms) },
      ...[...libraries, ...runtimes].map((found) => ({
        ref: refOf(found),
        dependsOn: refs(found.needs),
      })),
    ],
  }
}

function component(
  found: LockedPackage,
  type: 'library' | 'platform',
  scope: 'required' | 'optional',
  root: string,
) {
  const { key, name, version, integrity } = found
  const licence = licenceOf(key, root) ?? (BUN_PACKAGE.test(name) ? 'MIT' : undefined)
  if (!licence) throw new Error(`${key} states no licence, or is not installed`)
  const [group, short] = name.startsWith('@') ? name.split('/') : [undefined, name]
  return {
    type,
    'bom-ref': refOf(found),
    ...(group && { group }),
    name: short as string,
    version,
    scope,
    hashes: [{ alg: 'SHA-512', content: hexOf(integrity) }],
    licenses: licences(licence),
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
  }
}

/** Without repetitions: one version of a package in two places is one component. */
const unique = (packages: readonly LockedPackage[]) => [
  ...new Map(packages.map((found) => [refOf(found), found])).values(),
]

const refOf = ({ name, version }: { name: string; version: string }) => `${name}@${version}`

const licences = (licence: string) =>
  SPDX_ID.test(licence) ? [{ license: { id: licence } }] : [{ expression: licence }]

function hexOf(integrity: string): string {
  const [, base64] = /^sha512-([\w+/]+={0,2})$/.exec(integrity) ?? []
  if (!base64) throw new Error(`not a SHA-512 integrity: ${integrity}`)
  return Buffer.from(base64, 'base64').toString('hex')
}

function get(lock: ReadonlyMap<string, LockedPackage>, key: string): LockedPackage {
  const found = lock.get(key)
  if (!found) throw new Error(`bun.lock has no ${key}`)
  return found
}

/** A UUID version 8 (RFC 9562) that depends only on the input of the bill. */
function uuidOf(lock: Buffer, version: string): string {
  const bytes = new Bun.CryptoHasher('sha256').update(lock).update(version).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** A table of the packages that package.json names. */
function listPackages(): string {
  const lock = readLock()
  const { dependencies, optionalDependencies, devDependencies } = readManifest()
  const packages = { ...dependencies, ...optionalDependencies, ...devDependencies }
  const rows = Object.entries(packages).map(([name, version]) => {
    const needed = closure(lock, [name]).length - 1
    return `| ${name} | ${version} | ${licenceOf(name) ?? 'MIT'} | ${needed} |`
  })
  const head =
    '| package | version | licence | packages that it needs |\n| --- | --- | --- | ---: |'
  return [head, ...rows].join('\n')
}

function writeBill(): void {
  const bill = billOfMaterials()
  mkdirSync(join(ROOT, dirname(OUT)), { recursive: true })
  writeFileSync(join(ROOT, OUT), `${JSON.stringify(bill, null, 2)}\n`)
  console.log(`${OUT}: ${bill.components.length} components`)
}

if (import.meta.main) {
  if (process.argv.includes('--list')) console.log(listPackages())
  else writeBill()
}
