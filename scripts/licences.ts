/** The licences of what a release contains, as one text. Derived from bun.lock and the packages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

export type Versions = Record<string, string>

/** An entry of bun.lock: name and version, registry, facts, and the hash of the contents. */
export type Locked = [
  nameAndVersion: string,
  registry: string,
  facts: { dependencies?: Versions; peerDependencies?: Versions; hasInstallScript?: boolean },
  integrity: string,
]

/** By the place of a package: `qrcode/pngjs` is the one that `qrcode` needs. */
export const readLock = (): ReadonlyMap<string, Locked> =>
  new Map(
    // The file is JSON with trailing commas.
    Object.entries(
      (JSON.parse(read('bun.lock').replaceAll(/,(\s*[}\]])/g, '$1')) as { packages: object })
        .packages,
    ),
  )

/** Peers that are used by compilers only. */
const TYPES = /^(@types\/.*|bun-types|typescript)$/

/**
 * The places in bun.lock of the packages in the program, and of all that they need. The bundler
 * also finds optional peers that something else has installed.
 */
export function placesInProgram(lock = readLock()): string[] {
  const places = new Set<string>()
  const add = (place: string) => {
    if (places.has(place)) return
    places.add(place)
    const [, , facts] = lock.get(place) as Locked
    for (const name of Object.keys({ ...facts.dependencies, ...facts.peerDependencies })) {
      const found = [`${place}/${name}`, name].find((one) => lock.has(one))
      if (found && !TYPES.test(name)) add(found)
    }
  }
  for (const name of Object.keys(JSON.parse(read('package.json')).dependencies)) add(name)
  return [...places].sort()
}

/** The folder of a place of bun.lock. */
export const folderOf = (place: string): string =>
  `node_modules/${place.replaceAll(/(?<!^@[^/]*|\/@[^/]*)\//g, '/node_modules/')}`

export interface Licence {
  /** `name@version`, or what else is in the program. */
  of: string
  /** The SPDX name. */
  name: string
  /** Absent for a package without the file. */
  text?: string
}

export function listLicences(): Licence[] {
  const lock = readLock()
  const packages = placesInProgram(lock).map((place): Licence => {
    const folder = folderOf(place)
    const { license: name } = JSON.parse(read(`${folder}/package.json`)) as { license: string }
    const files = readdirSync(join(ROOT, folder)).filter((file) =>
      /^(licen[cs]e|notice)/i.test(file),
    )
    const text = files.sort().map((file) => read(`${folder}/${file}`).trim())
    return {
      of: lock.get(place)?.[0] ?? place,
      name,
      ...(text.length > 0 && { text: text.join('\n\n') }),
    }
  })
  const passwords = read('src/accounts/common-passwords.txt').match(/^#.*/gm) ?? []
  return [
    { of: 'Hopcode', name: 'MIT', text: read('LICENSE').trim() },
    {
      of: 'Bun, the runtime',
      name: 'MIT, with libraries',
      text: read('docs/licences-of-bun.txt').trim(),
    },
    { of: 'The list of common passwords', name: 'MIT', text: passwords.join('\n') },
    ...packages,
  ]
}

/** Texts that every Debian has. */
const COMMON = '/usr/share/common-licenses'
const COMMON_NAMES = ['Apache-2.0', 'LGPL-2', 'LGPL-2.1']
const RULE = `\n\n${'='.repeat(80)}\n`

/**
 * All licences. `common`: whether the long texts that Debian has are in it, or named by their
 * place, as Debian asks of its packages.
 */
export function licencesText({ common }: { common: 'included' | 'named' }): string {
  const parts = listLicences().map(({ of, name, text = `The licence is ${name}.` }) => {
    const isLong = common === 'named' && /TERMS AND CONDITIONS FOR USE, REPRODUCTION/.test(text)
    return `${of}: ${name}\n\n${isLong ? `The text is in ${COMMON}/Apache-2.0.` : text}`
  })
  const texts = COMMON_NAMES.map((name) => {
    const file = join(COMMON, name)
    if (!existsSync(file)) throw new Error(`${file} is missing: releases are made on Debian`)
    return common === 'named' ? `${name}: see ${file}` : `${name}\n\n${readFileSync(file, 'utf8')}`
  })
  return `${[...parts, ...texts].join(RULE)}\n`
}
