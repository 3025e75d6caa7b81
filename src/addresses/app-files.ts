import { z } from 'zod'
import { type Authored, authoredWrite, subject } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { parseJson } from '../lib/json.ts'

/**
 * The files by which a phone knows that an app opens addresses of a domain: it reads them at
 * `/.well-known/` of the domain, when the app is installed.
 */

export const APP_FILE_BYTES_MAX = 128 * 1024

/** Each message continues the name of the key. */
const Text = z.string('must be a text').min(1, 'must not be empty')
const listOf = <Item extends z.ZodType>(item: Item) =>
  z.array(item, 'must be a list').min(1, 'must not be empty')
const objectOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.looseObject(shape, 'must be an object')

const AppId = Text.regex(/^[^.\s]+\.\S+$/, 'must be like ABCDE12345.com.example.app')
const Apps = objectOf({ apps: listOf(AppId) }).optional()
const Detail = objectOf({ appID: AppId.optional(), appIDs: listOf(AppId).optional() }).refine(
  ({ appID, appIDs }) => appID ?? appIDs,
  { path: ['appIDs'], message: 'must be a list' },
)
const Apple = objectOf({
  applinks: objectOf({ details: listOf(Detail) }).optional(),
  webcredentials: Apps,
  appclips: Apps,
}).refine(({ applinks, webcredentials, appclips }) => applinks ?? webcredentials ?? appclips, {
  path: ['applinks'],
  message: 'must be an object, unless there is webcredentials or appclips',
})

const Fingerprint = Text.regex(
  /^([\dA-F]{2}:){31}[\dA-F]{2}$/i,
  'must be 32 hexadecimal bytes with colons between them',
)
const AndroidApp = objectOf({
  namespace: z.literal('android_app'),
  package_name: Text,
  sha256_cert_fingerprints: listOf(Fingerprint),
})
const Site = objectOf({ namespace: z.literal('web'), site: Text })
const NAMESPACES = 'must be android_app or web'
const Android = listOf(
  objectOf({
    relation: listOf(Text),
    target: z.discriminatedUnion('namespace', [AndroidApp, Site], NAMESPACES),
  }),
)

/** `name`: below `/.well-known/`. */
export const APP_FILES = {
  apple: { name: 'apple-app-site-association', model: Apple },
  android: { name: 'assetlinks.json', model: Android },
} as const

export type AppKind = keyof typeof APP_FILES
export const APP_KINDS = Object.keys(APP_FILES) as AppKind[]

/** The file to store. Throws `invalid_value`, whose text names the key that is wrong. */
export function parseAppFile(kind: AppKind, text: string): string {
  const { name, model } = APP_FILES[kind]
  const refused = (problem: string) => new AppError('invalid_value', `${name}: ${problem}`)
  const content = text.replace(/^\u{feff}/u, '').replaceAll('\r\n', '\n')
  const size = Buffer.byteLength(content)
  if (size > APP_FILE_BYTES_MAX) {
    throw refused(`it has ${Math.ceil(size / 1024)} KiB, and may have 128 KiB`)
  }
  const value = parseJson(content)
  if (value === undefined) throw refused('it must be JSON')
  const issue = model.safeParse(value).error?.issues[0]
  if (issue) throw refused(`${keyText(issue.path) || 'it'} ${issue.message}`)
  return content
}

/** `applinks.details[0].appIDs` */
const keyText = (path: readonly PropertyKey[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')

/** They are read for each request: phones ask seldom. */
export const appFiles = subject({
  reads(db) {
    const find = db.prepare<{ content: string }, [number, AppKind]>(
      'SELECT content FROM app_files WHERE domain_id = ? AND kind = ?',
    )
    return {
      find: (domainId: number, kind: AppKind): string | undefined =>
        find.get(domainId, kind)?.content,
    }
  },

  writes: {
    /** Null removes the file. False if there is no such domain. */
    save: authoredWrite('owner', (db) => {
      const remove = db.prepare<null, [number, AppKind]>(
        'DELETE FROM app_files WHERE domain_id = ? AND kind = ?',
      )
      const save = db.prepare<null, [number, AppKind, string]>(
        `INSERT INTO app_files (domain_id, kind, content) SELECT ?1, ?2, ?3
         WHERE ?1 = ${PRIMARY_ID} OR EXISTS (SELECT 1 FROM domains WHERE id = ?1)`,
      )
      return (file: Authored & { domainId: number; kind: AppKind; content: string | null }) => {
        const { domainId, kind, content } = file
        remove.run(domainId, kind)
        return content === null || save.run(domainId, kind, content).changes > 0
      }
    }),
  },
})
