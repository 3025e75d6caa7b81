/**
 * Writes dist/sbom.json: what the program is made of, as a CycloneDX 1.6 bill of materials. From
 * package.json and bun.lock, and licences from node_modules; the same input gives the same bytes.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = dirname(import.meta.dir)
const OUT = 'dist/sbom.json'
/** Bun itself, whose runtime every binary holds. */
const BUN_PACKAGE = /^@oven\/bun-/
/** SPDX identifiers hold no spaces; with them it is an expression. */
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

interface Wishes {
  dependencies?: Names
  optionalDependencies?: Names
  peerDependencies?: Names
  optionalPeers?: string[]
  hasInstallScript?: boolean
}

/** Name and version, the registry's tarball (empty for the default one), wishes, integrity. */
type Entry = [id: string, tarball: string, wishes: Wishes, integrity: string]

export interface LockedPackage {
  /** Its place: `qrcode/pngjs` is the pngjs of qrcode alone. */
  key: string
  name: string
  version: string
  /** Of the packed package, as `sha512-` and base64. */
  integrity: string
  hasInstallScript: boolean
  /** Keys of what it needs where it runs. */
  needs: string[]
}

export const readManifest = (root = ROOT): Manifest =>
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Every package of bun.lock by its key. Throws if one needs what is not there. */
export function readLock(root = ROOT): Map<string, LockedPackage> {
  const lock = Bun.JSONC.parse(readFileSync(join(root, 'bun.lock'), 'utf8')) as {
    packages: Record<string, Entry>
  }
  const keys = new Set(Object.keys(lock.packages))
  const locked = Object.entries(lock.packages).map(([key, [id, , wishes, integrity]]) => {
    const at = id.lastIndexOf('@')
    const required = Object.keys(wishes.peerDependencies ?? {}).filter(
      (name) => !wishes.optionalPeers?.includes(name),
    )
    const needs = [...Object.keys(wishes.dependencies ?? {}), ...required].map((name) => {
      const found = resolve(keys, key, name)
      if (found === undefined) throw new Error(`bun.lock has no ${name} for ${key}`)
      return found
    })
    // Those of other platforms may be left out of the file.
    const optional = Object.keys(wishes.optionalDependencies ?? {})
    needs.push(...optional.flatMap((name) => resolve(keys, key, name) ?? []))
    const { hasInstallScript = false } = wishes
    const [name, version] = [id.slice(0, at), id.slice(at + 1)]
    return { key, name, version, integrity, hasInstallScript, needs: [...new Set(needs)].sort() }
  })
  return new Map(locked.map((entry) => [entry.key, entry]))
}

/** The key of `name` as the package at `key` sees it: its own, or that of a folder above. */
function resolve(keys: ReadonlySet<string>, key: string, name: string): string | undefined {
  const parts = key.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []
  for (let length = parts.length; length >= 0; length--) {
    const candidate = [...parts.slice(0, length), name].join('/')
    if (keys.has(candidate)) return candidate
  }
  return undefined
}

/** The packages of `keys` and all that they need, in the order of their keys. */
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

/** SPDX, as the installed package states it; undefined where it is not installed here. */
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

/** The bill of materials. Throws if an installed package states no licence. */
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
        description: 'The runtime in the binary, with SQLite in it.',
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

/** A package at two places in the same version is one component to others, and named once. */
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

/** Version 8 of RFC 9562: from what the bill is made of, so that it changes with that alone. */
function uuidOf(lock: Buffer, version: string): string {
  const bytes = new Bun.CryptoHasher('sha256').update(lock).update(version).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

if (import.meta.main) {
  const bill = billOfMaterials()
  mkdirSync(join(ROOT, dirname(OUT)), { recursive: true })
  writeFileSync(join(ROOT, OUT), `${JSON.stringify(bill, null, 2)}\n`)
  console.log(`${OUT}: ${bill.components.length} components`)
}
