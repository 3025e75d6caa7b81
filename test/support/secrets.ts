import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Searches everything that a service has written for texts that must not be there. */

/** Texts that must stand nowhere, by what they are. */
export type Secrets = Map<string, string>

export function findSecrets(secrets: Secrets, places: ReadonlyMap<string, Uint8Array>): string[] {
  const found: string[] = []
  for (const [place, bytes] of places) {
    const buffer = Buffer.from(bytes)
    for (const [name, secret] of secrets) {
      const spellings = {
        plain: Buffer.from(secret),
        'UTF-16': Buffer.from(secret, 'utf16le'),
        base64: Buffer.from(
          Buffer.from(secret)
            .toString('base64')
            .replace(/..?=*$/, ''),
        ),
        hex: Buffer.from(Buffer.from(secret).toString('hex')),
        'as of a form': Buffer.from(encodeURIComponent(secret).replaceAll('%20', '+')),
      }
      for (const [spelling, text] of Object.entries(spellings)) {
        if (spelling !== 'plain' && text.equals(spellings.plain)) continue
        if (buffer.includes(text)) found.push(`${name} in ${place}, ${spelling}`)
      }
    }
  }
  return found
}

export function filesUnder(folder: string): Map<string, Uint8Array> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((it) => join(it.parentPath, it.name))
  return new Map(paths.map((path) => [relative(folder, path), readFileSync(path)]))
}
