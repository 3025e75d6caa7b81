import { type Command, Option } from '@commander-js/extra-typings'
import { APP_FILES, APP_KINDS, type AppKind, parseAppFile } from '../addresses/app-files.ts'
import type { Domain, DomainUses } from '../addresses/domains.ts'
import {
  type AppFiles,
  addDomain as add,
  type DomainInput,
  removeDomain as remove,
  setDomain as set,
} from '../addresses/operations.ts'
import { findAccount } from './accounts.ts'
import { type Administration, operatorOf, printing } from './administration.ts'
import { readText } from './input.ts'
import { type Flag, JSON_LINES, JSON_OBJECT, parseText } from './options.ts'

const HOST = ['<HOST>', 'its name, such as go.example', parseText] as const
const ROOT_URL = [
  '--root-url <U>',
  'where visitors of / are redirected, or none',
  parseText,
] as const
const NOT_FOUND_URL = [
  '--not-found-url <U>',
  'where browsers that open an unknown path are redirected, or none',
  parseText,
] as const
const codesOption = () =>
  new Option('--codes <C>', 'which codes it answers: those of its own links, or all').choices([
    'own',
    'all',
  ] as const)
const FOR = [
  '--for <WHO>',
  'who may use it for links: owners, all, or the e-mail address of one account',
  parseText,
] as const

const appOption = <Kind extends AppKind>(kind: Kind) =>
  [
    `--${kind} <FILE>`,
    `file for phones: /.well-known/${APP_FILES[kind].name}, or none`,
    parseText,
  ] as const

export function addDomainCommands(program: Command): void {
  const domain = program.command('domain').description('domains of short links beside BASE_URL')
  domain
    .command('add')
    .summary('answer short links on another domain')
    .description(
      'Answer short links on another domain. Without options, owners of the service may use it, ' +
        'and it answers the codes of its own links. A former BASE_URL: --codes all',
    )
    .argument(...HOST)
    .option(...ROOT_URL)
    .option(...NOT_FOUND_URL)
    .addOption(codesOption())
    .option(...FOR)
    .option(...JSON_OBJECT)
    .action((host, options) => run('addDomain', { host, ...options }))
  domain
    .command('set')
    .description('change a domain; an option that is absent stays. BASE_URL: --apple, --android')
    .argument(...HOST)
    .option(...ROOT_URL)
    .option(...NOT_FOUND_URL)
    .addOption(codesOption())
    .option(...FOR)
    .option(...appOption('apple'))
    .option(...appOption('android'))
    .option(...JSON_OBJECT)
    .action(async (host, options) => {
      const apple = await readApp('apple', options.apple)
      const android = await readApp('android', options.android)
      return run('setDomain', { host, ...options, apple, android })
    })
  domain
    .command('list')
    .description('list the domains with their links and aliases')
    .option(...JSON_LINES)
    .action((options) => run('listDomains', options))
  domain
    .command('remove')
    .description('stop answering on a domain')
    .argument(...HOST)
    .option('--move-links', 'its links and aliases get the domain of BASE_URL')
    .option(...JSON_OBJECT)
    .action((host, options) => run('removeDomain', { host, ...options }))
}

/** The text of a file, for a service that may not read it; null for `none`. */
async function readApp(
  kind: AppKind,
  file: string | undefined,
): Promise<string | null | undefined> {
  return file === undefined || file === 'none'
    ? file && null
    : parseAppFile(kind, await readText(file))
}

const REQUESTED = 'The certificate is being requested: hopcode certificate'
const REMOVED =
  'Remove its record from DNS too, and the name from a proxy: until then, it answers the short ' +
  'links of the primary domain.'

/** What the commands run. Each function returns what is printed. */
export const domainCommands = { addDomain, setDomain, listDomains, removeDomain }

const run = printing(domainCommands)

interface DomainOptions {
  host: string
  rootUrl?: string | undefined
  notFoundUrl?: string | undefined
  codes?: 'own' | 'all' | undefined
  for?: string | undefined
  json?: Flag
}

async function addDomain(deps: Administration, options: DomainOptions): Promise<string> {
  const { host } = await add(deps, operatorOf(deps), await inputOf(deps, options))
  const text = await shown(deps, host, { verb: 'is added', json: options.json })
  const isRequested = deps.certificates?.status().source === 'acme' && !options.json
  return isRequested ? `${text}\n${REQUESTED}` : text
}

async function setDomain(
  deps: Administration,
  { apple, android, ...options }: DomainOptions & AppFiles,
): Promise<string> {
  const input = { ...(await inputOf(deps, options)), apple, android }
  const { host } = await set(deps, operatorOf(deps), input)
  return shown(deps, host, { verb: 'is changed', json: options.json })
}

async function inputOf(
  deps: Administration,
  { host, rootUrl, notFoundUrl, codes, for: user }: DomainOptions,
): Promise<DomainInput> {
  await deps.writer.catchUp()
  const isGroup = user === undefined || user === 'owners' || user === 'all'
  return {
    host,
    codes,
    for: isGroup ? user : findAccount(deps.data.accounts, user).id,
    rootUrl: rootUrl === 'none' ? null : rootUrl,
    notFoundUrl: notFoundUrl === 'none' ? null : notFoundUrl,
  }
}

async function shown(
  deps: Administration,
  host: string,
  { verb, json }: { verb: string; json: Flag },
): Promise<string> {
  const view = (await viewsOf(deps)).find(({ domain }) => domain === host)
  // Another command may have removed it meanwhile.
  if (!view) return json ? JSON.stringify({ domain: host }) : `${host} ${verb}.`
  return json ? JSON.stringify(view) : `${host} ${verb}.\n${lineOf(view)}`
}

async function listDomains(deps: Administration, { json }: { json?: Flag }): Promise<string> {
  const views = await viewsOf(deps)
  const lines = views.map((view) => (json ? JSON.stringify(view) : lineOf(view)))
  return lines.join('\n') || (json ? '' : 'No domains beside that of BASE_URL.')
}

async function removeDomain(
  deps: Administration,
  { host: text, moveLinks, json }: { host: string; moveLinks?: Flag; json?: Flag },
): Promise<string> {
  await deps.writer.catchUp()
  const host = await remove(deps, operatorOf(deps), { host: text, movesLinks: moveLinks === true })
  return json ? JSON.stringify({ domain: host, removed: true }) : `${host} is removed.\n${REMOVED}`
}

async function viewsOf(deps: Administration) {
  const uses = await deps.data.domains.countUses({})
  return deps.data.domains.list().map((one) => viewOf(deps, one, uses[one.id]))
}

type View = ReturnType<typeof viewOf>

function viewOf({ data }: Administration, domain: Domain, uses: DomainUses | undefined) {
  const { host, rootUrl, notFoundUrl, codes, access, accountId } = domain
  const { links = 0, aliases = 0 } = uses ?? {}
  const apps = APP_KINDS.filter((kind) => data.appFiles.find(domain.id, kind) !== undefined)
  const user = accountId === null ? access : (data.accounts.findById(accountId)?.name ?? null)
  return {
    domain: host,
    root_url: rootUrl,
    not_found_url: notFoundUrl,
    codes,
    for: user,
    links,
    aliases,
    apps,
  }
}

function lineOf(view: View): string {
  const pages = [
    view.root_url && `/ to ${view.root_url}`,
    view.not_found_url && `unknown paths to ${view.not_found_url}`,
  ]
  return [
    view.domain,
    `${view.codes} codes`,
    `for ${view.for ?? 'a deleted account'}`,
    `${view.links} links`,
    `${view.aliases} aliases`,
    ...pages.filter((page) => page !== null),
    ...view.apps.map((kind) => `app file of ${kind}`),
  ].join('  ')
}
