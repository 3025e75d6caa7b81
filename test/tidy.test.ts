/**
 * Rules about the layout of the sources and what they must not contain. Every rule has examples
 * that it must refuse. Rules that need a parser are in biome.json.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'

interface Source {
  /** From the root of the project. */
  path: string
  text: string
}

interface Rule {
  title: string
  applies: (path: string) => boolean
  /** The violations, in a few words each. */
  find: (source: Source) => string[]
  /** Sources that the rule must refuse. */
  bad: readonly Source[]
  /** Similar sources that the rule must accept. */
  fine?: readonly Source[]
}

const ROOT = dirname(import.meta.dir)
const COLUMNS_MAX = 100

/** A file imports from its own layer or one above it in this list. */
const LAYERS: readonly string[] =
  `
  lib errors draw config hot db accounts limits maintenance http addresses certificates blocklist
  outgoing hits visits links checks history lists import analytics moderation qr webhooks data
  cluster redirect status dashboard compatible openapi client backup data-folder threads service app
  cli main
`.match(/\S+/g) ?? []

const isTest = (path: string) => /\.test\.ts$/.test(path)
const isProgram = (path: string) => /^src\/.*\.ts$/.test(path) && !isTest(path)
const isCode = (path: string) => /\.(ts|mjs|js)$/.test(path)

// A string ends with its line at the latest, so that a quote in a regular expression hides no
// more than the rest of its line.
const COMMENT_OR_STRING =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\\n])*`/g

/** The text without comments, its lines kept. */
function withoutComments(text: string): string {
  return text.replace(COMMENT_OR_STRING, (found) =>
    /^\/[/*]/.test(found) ? found.replace(/[^\n]/g, ' ') : found,
  )
}

/** The text with empty strings. */
function withoutQuotes(text: string): string {
  return text.replace(COMMENT_OR_STRING, (found) => (/^['"]/.test(found) ? "''" : found))
}

const codeOf = (text: string) => withoutQuotes(withoutComments(text))

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(new RegExp(pattern, 'g'))].map(
    (found) => `line ${text.slice(0, found.index).split('\n').length}: ${found[0].trim()}`,
  )
}

/** The first cycle of imports found, as a chain that ends with its first file; else empty. */
function findCycle(files: readonly Source[]): string[] {
  const imports = new Map(files.map((file) => [file.path, importsOf(file)]))
  const done = new Set<string>()
  const visit = (path: string, chain: string[]): string[] => {
    if (chain.includes(path)) return [...chain.slice(chain.indexOf(path)), path]
    if (done.has(path)) return []
    for (const { target } of imports.get(path) ?? []) {
      const cycle = visit(target, [...chain, path])
      if (cycle.length > 0) return cycle
    }
    done.add(path)
    return []
  }
  for (const { path } of files) {
    const cycle = visit(path, [])
    if (cycle.length > 0) return cycle
  }
  return []
}

const ban = (pattern: RegExp) => (source: Source) => matches(codeOf(source.text), pattern)
const banEverywhere = (pattern: RegExp) => (source: Source) => matches(source.text, pattern)

/** The imports of a file, type imports too: own files as paths from the root, packages by name. */
function importsOf({ path, text }: Source): { target: string; isType: boolean }[] {
  const statement =
    /\b(?:(import|export)\s+(type\s)?[\w$\s{},*]*?\sfrom|import\s*\(?\s*)\s*'([^']+)'/g
  return [...withoutComments(text).matchAll(statement)].map(([, , type, target = '']) => ({
    target: target.startsWith('.') ? normalize(join(dirname(path), target)) : target,
    isType: type !== undefined,
  }))
}

/** The folder in `src/`, or the file's own name for a file directly in `src/`. */
function layerOf(path: string): string {
  const [, first = '', second] = path.split('/')
  return second === undefined ? basename(first, '.ts') : first
}

function findImportsAgainstTheOrder(source: Source): string[] {
  const own = LAYERS.indexOf(layerOf(source.path))
  if (own < 0) return [`${layerOf(source.path)} is in no layer`]
  return importsOf(source)
    .filter(({ target }) => target.startsWith('src/') && LAYERS.indexOf(layerOf(target)) > own)
    .map(({ target }) => `imports ${target}`)
}

function findImports(wanted: RegExp, { typesToo }: { typesToo: boolean }) {
  return (source: Source) =>
    importsOf(source)
      .filter(({ target, isType }) => wanted.test(target) && (typesToo || !isType))
      .map(({ target }) => `imports ${target}`)
}

function findLoosePins({ text }: Source): string[] {
  const manifest = JSON.parse(text) as Record<string, Record<string, string> | undefined>
  return ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']
    .flatMap((group) => Object.entries(manifest[group] ?? {}))
    .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(([name, version]) => `${name} is ${version}`)
}

/** The titles of tests are whole sentences, which the formatter cannot break: they do not count. */
function findLongLines({ path, text }: Source): string[] {
  const lines = (isTest(path) ? withoutQuotes(text) : text).trimEnd().split('\n')
  return lines.flatMap((line, index) =>
    [...line].length > COLUMNS_MAX ? [`line ${index + 1}: ${[...line].length} columns`] : [],
  )
}

const source = (path: string, ...lines: string[]): Source => ({ path, text: lines.join('\n') })

const RULES: readonly Rule[] = [
  {
    title: 'imports point in one direction through the layers, type imports too',
    applies: isProgram,
    find: findImportsAgainstTheOrder,
    bad: [
      source('src/lib/a.ts', "import { b } from '../links/b.ts'"),
      source('src/links/a.ts', "import type { B } from '../qr/b.ts'"),
      source('src/qr/a.ts', 'export {', '  b,', "} from '../app.ts'"),
      source('src/hits/a.ts', "const b = await import('../threads/writer.ts')"),
      source('src/novel/a.ts', ''),
    ],
    fine: [
      source('src/qr/a.ts', "import { b } from '../links/b.ts'"),
      source('src/app.ts', "import type { Writes } from './threads/writer.ts'"),
      source('src/lib/a.ts', "// Not: import { b } from '../links/b.ts'"),
    ],
  },
  {
    title: 'only app.ts imports routes.ts',
    applies: (path) => isProgram(path) && path !== 'src/app.ts',
    find: findImports(/^src\/.*\/routes\.ts$/, { typesToo: true }),
    bad: [source('src/qr/a.ts', "import { b } from './routes.ts'")],
  },
  {
    title: 'a schema imports no store, and a store imports no guard',
    applies: (path) => isProgram(path) && /\/(schema|store|put)\.ts$/.test(path),
    find: (file) =>
      findImports(/schema\.ts$/.test(file.path) ? /^src\/.*\/(store|put)\.ts$/ : /\/guard\.ts$/, {
        typesToo: true,
      })(file),
    bad: [source('src/links/schema.ts', "import { linkWrites } from './put.ts'")],
    fine: [source('src/links/put.ts', "import { Code } from './code.ts'")],
  },
  {
    title: 'elysia appears only in routes, guards, http/, openapi/ and app.ts',
    applies: (path) =>
      isProgram(path) &&
      !/[/-](routes|guard)\.ts$|^src\/(http|openapi|dashboard\/pages)\/|^src\/app\.ts$/.test(path),
    find: findImports(/^(elysia|@elysiajs\/.*)$/, { typesToo: true }),
    bad: [source('src/links/reserve.ts', "import { Elysia } from 'elysia'")],
  },
  {
    title: 'only links/put.ts and links/hand-over.ts write rows of links',
    applies: (path) => isProgram(path) && !/^src\/links\/(put|hand-over)\.ts$/.test(path),
    find: banEverywhere(/\b(INSERT|UPDATE|DELETE)( OR \w+)?( INTO| FROM)? links\b/),
    bad: [
      source('src/import/store.ts', "db.prepare('UPDATE links SET delete_at = NULL')"),
      source('src/links/deletion.ts', "db.run('DELETE FROM links WHERE id = ?')"),
      source('src/import/store.ts', "db.run('INSERT OR IGNORE INTO links (code) VALUES (?)')"),
    ],
    fine: [source('src/links/search-index.ts', "db.run('DELETE FROM links_search')")],
  },
  {
    title: 'no SQL in routes, pages and cards of the dashboard, or hot/',
    applies: (path) =>
      isProgram(path) && /[/-]routes\.ts$|^src\/dashboard\/(pages|cards)\/|^src\/hot\//.test(path),
    find: (file) => [
      ...findImports(/^bun:sqlite$/, { typesToo: false })(file),
      ...findImports(/^drizzle-orm/, { typesToo: true })(file),
    ],
    bad: [
      source('src/links/routes.ts', "import { Database } from 'bun:sqlite'"),
      source('src/dashboard/pages/links.ts', "import { eq } from 'drizzle-orm'"),
      source('src/hot/journal.ts', "import type { SQL } from 'drizzle-orm/sqlite-core'"),
    ],
    fine: [source('src/links/routes.ts', "import type { Database } from 'bun:sqlite'")],
  },
  {
    title: 'no file is called index, utils, helpers or types',
    applies: isCode,
    find: ({ path }) => (/(^|\/)(index|utils?|helpers?|types)\.\w+$/.test(path) ? [path] : []),
    bad: [source('src/links/index.ts'), source('test/support/helpers.ts')],
    fine: [source('src/hot/key-index.ts')],
  },
  {
    title: 'file names are kebab-case',
    applies: isCode,
    find: ({ path }) => (/^[a-z0-9-]+(\.[a-z]+)+$/.test(basename(path)) ? [] : [path]),
    bad: [source('src/links/LinkStore.ts'), source('src/links/link_store.ts')],
  },
  {
    title: 'no default exports',
    applies: (path) => isCode(path) && path !== 'drizzle.config.ts',
    find: ban(/\bexport\s+default\b|\bas\s+default\b/),
    bad: [
      source('src/a.ts', 'export default class {}'),
      source('src/a.ts', 'export { a as default }'),
    ],
  },
  {
    title: 'only lib/log.ts writes to the console',
    applies: (path) => isProgram(path) && path !== 'src/lib/log.ts',
    find: ban(/\bconsole\s*\.|\bprocess\.std(out|err)\.write\b/),
    bad: [source('src/a.ts', "console.log('a')"), source('src/a.ts', 'process.stdout.write(a)')],
    fine: [source('src/a.ts', "// console.log is banned, and so says 'console.log'")],
  },
  {
    title: 'only config.ts reads the environment',
    applies: (path) => isProgram(path) && path !== 'src/config.ts',
    find: ban(/\b(process|Bun|import\.meta)\.env\b/),
    bad: [source('src/a.ts', 'const a = process.env.A'), source('src/a.ts', 'const a = Bun.env.A')],
  },
  {
    title: 'only main.ts exits the process and handles signals',
    applies: (path) => isProgram(path) && path !== 'src/main.ts',
    find: (file) => [
      // Signal 0 only asks whether a process exists.
      ...ban(/\bprocess\.(exit|abort|exitCode|kill(?!\(\w+, 0\)))\b/)(file),
      ...matches(withoutComments(file.text), /\bprocess\.(on|once)\(\s*'SIG\w+'/),
    ],
    bad: [source('src/a.ts', 'process.exit(1)'), source('src/a.ts', "process.on('SIGTERM', stop)")],
  },
  {
    title: 'no comment or type switches off the type checker or the linter',
    applies: isCode,
    // Built from parts, because this file is searched too.
    find: (file) => [
      ...ban(/\bas\s+any\b|:\s*any\b|<\s*any\s*>/)(file),
      ...banEverywhere(new RegExp(`@ts-(${'ignore|expect-error|nocheck'})|biome-${'ignore'}`))(
        file,
      ),
    ],
    bad: [
      source('src/a.ts', 'const a = b as any'),
      source('src/a.ts', `// @ts-${'ignore'}`),
      source('src/a.ts', `// biome-${'ignore'} lint: because`),
    ],
    fine: [source('src/a.ts', '// Any text, as any reader sees.')],
  },
  {
    title: 'no test is skipped, and none runs alone',
    applies: isTest,
    find: ban(/\b(test|it|describe)(\.\w+)*\.(only|skip|todo|failing)\b/),
    bad: [
      source('src/a.test.ts', "test.only('a', () => {})"),
      source('src/a.test.ts', "describe.skip('a', () => {})"),
      source('src/a.test.ts', "test.todo('a')"),
    ],
    fine: [source('src/a.test.ts', "test.each([1])('.only %i', () => {})")],
  },
  {
    title: `a line has at most ${COLUMNS_MAX} columns`,
    applies: (path) => isCode(path) && !path.endsWith('.gen.ts'),
    find: findLongLines,
    bad: [source('src/a.ts', `// ${'x'.repeat(COLUMNS_MAX - 2)}`)],
    fine: [
      source('src/a.ts', `// ${'x'.repeat(COLUMNS_MAX - 3)}`),
      source('src/a.ts', '€'.repeat(COLUMNS_MAX)),
      source('src/a.test.ts', `test('${'x'.repeat(COLUMNS_MAX)}', () => {`),
    ],
  },
  {
    title: 'every direct dependency is pinned to an exact version',
    applies: (path) => path === 'package.json',
    find: findLoosePins,
    bad: ['^1.0.0', '1.x', 'latest', '~2.1.0', 'github:a/b'].map((version) =>
      source('package.json', JSON.stringify({ devDependencies: { a: version } })),
    ),
    fine: [source('package.json', JSON.stringify({ dependencies: { a: '1.0.0-beta.2' } }))],
  },
  {
    title: 'no file names a package registry: each installation chooses its own',
    applies: () => true,
    find: (file) =>
      banEverywhere(
        file.path === 'bun.lock'
          ? /\bhttps?:\/\/\S+/
          : /\bregistry\.[\w-]+\.(com|org|net|io)\b|\bnpm\.pkg\.\w+/,
      )(file),
    bad: [
      source('bun.lock', '["a@1.0.0", "https://somewhere.example/a.tgz", {}, "sha512-"]'),
      source('.npmrc', `registry=https://registry.${'npmjs.org'}/`),
    ],
  },
]

const SKIPPED =
  /^(node_modules|dist|data|\.git|test\/\.artifacts)\/|\.(png|ico|woff2?|db|gz|bun-build)$/

function readProject(): Source[] {
  const paths = [...new Bun.Glob('**/*').scanSync({ cwd: ROOT, dot: true })].sort()
  return paths
    .filter((path) => !SKIPPED.test(path))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

const project = readProject()

test.each(RULES.map((rule) => [rule.title, rule] as const))('%s', (_, { applies, find }) => {
  const files = project.filter(({ path }) => applies(path))
  expect(files.length).toBeGreaterThan(0)
  expect(files.flatMap((file) => find(file).map((wrong) => `${file.path}: ${wrong}`))).toEqual([])
})

test.each(RULES.map((rule) => [rule.title, rule] as const))(
  'the rule refuses its bad examples: %s',
  (_, rule) => {
    for (const file of rule.bad) {
      expect(rule.applies(file.path)).toBe(true)
      expect(rule.find(file)).not.toEqual([])
    }
    for (const file of rule.fine ?? []) expect(rule.find(file)).toEqual([])
  },
)

const ROOTS = ['src', 'bench', 'scripts', 'test']

test.each(ROOTS)('no import cycle in %s/, type imports included', (root) => {
  const files = project.filter(({ path }) => isCode(path) && path.startsWith(`${root}/`))
  expect(files.length).toBeGreaterThan(0)
  expect(findCycle(files)).toEqual([])
})

test('an import cycle is found, and printed from its first file to its first file', () => {
  const a = source('src/qr/a.ts', "import './b.ts'")
  const b = source('src/qr/b.ts', "import type { C } from './c.ts'")
  const c = source('src/qr/c.ts', "export { a } from './a.ts'")
  expect(findCycle([a, b])).toEqual([])
  expect(findCycle([b, a, c])).toEqual([b, c, a, b].map(({ path }) => path))
})

const CODE_PATH = /^(?:src|test|bench|scripts|e2e|durability|abuse)\/[\w./-]+$/

/** Relative links and paths of code in a Markdown file that no file or folder has. */
function findDeadPaths({ path, text }: Source, paths: readonly string[]): string[] {
  const exists = (start: string) => paths.some((candidate) => candidate.startsWith(start))
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = '']) => link)
  const words = [...text.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => code.split(' '))
  return [
    ...links.filter((link) => !exists(normalize(join(dirname(path), link)))),
    ...words.filter((word) => CODE_PATH.test(word) && !exists(word) && !exists(`test/${word}`)),
  ]
}

test('every link and every path of code in the documentation exists', () => {
  const paths = [...new Bun.Glob('**/*').scanSync({ cwd: ROOT })].filter(
    (path) => !path.startsWith('node_modules/'),
  )
  const pages = project.filter(({ path }) => /^(README|bench\/\w+|docs\/.*)\.md$/.test(path))
  expect(pages.length).toBeGreaterThan(10)
  expect(
    pages.flatMap((page) => findDeadPaths(page, paths).map((dead) => `${page.path}: ${dead}`)),
  ).toEqual([])
  const page = source('docs/a.md', '[b](b.md) [c](../src/c.ts#d) `npm test e2e/x src/gone.ts`')
  expect(findDeadPaths(page, ['src/c.ts', 'test/e2e/x.test.ts'])).toEqual(['b.md', 'src/gone.ts'])
})

test('a unit test is in the folder of the file that it tests', () => {
  const paths = new Set(project.map(({ path }) => path))
  const subject = (path: string) => path.replace(/(\.[a-z]+)?\.test\.ts$/, '.ts')
  expect(subject('src/hot/sliding-window.oracle.test.ts')).toBe('src/hot/sliding-window.ts')
  const units = [...paths].filter((path) => path.startsWith('src/') && isTest(path))
  expect(units.filter((path) => !paths.has(subject(path)))).toEqual([])
})

test('a redirect thread loads the code of redirects only', async () => {
  const { outputs } = await Bun.build({ entrypoints: ['src/threads/redirect.ts'], target: 'bun' })
  const text = (await outputs[0]?.text()) ?? ''
  const packages = new Set(
    [...text.matchAll(/^\/\/ node_modules\/([\w.-]+)/gm)].map(([, name]) => name),
  )
  expect([...packages].sort()).toEqual(['ipaddr.js', 'lru-cache'])
})

test('style sheets have six sizes of type, and code blocks alone are monospaced', async () => {
  const files = ['dashboard', 'theme'].map((name) => `src/dashboard/assets/${name}.css`)
  const texts = await Promise.all(files.map((path) => Bun.file(join(ROOT, path)).text()))
  const sizes = texts.flatMap((text) =>
    [...text.matchAll(/font(?:-size)?: (?:\d+ )?([\d.]+)rem/g)].map(([, rem]) => 16 * Number(rem)),
  )
  expect([...new Set(sizes)].sort((a, b) => a - b)).toEqual([13, 14, 15, 17, 22, 26])
  const uses = texts.flatMap((text) => [...text.matchAll(/([^{}]*)\{[^{}]*var\(--mono\)/g)])
  expect(uses.map(([, selector]) => selector?.trim())).toEqual(['pre,\n  textarea.code'])
})
