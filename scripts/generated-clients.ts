/**
 * Uses the published API description with programs of others: `npm run test:clients`, or
 * `npm run test:clients -- go redocly` for some of them. Clients are generated, compiled, and used
 * by the programs in scripts/clients on a service of their own; two linters read the description,
 * and Schemathesis sends requests made from it, at least 10,000 or `--cases N`. Needs Java, Maven,
 * Rust, Go and Python 3, and the package registries of their languages. A tool that is missing is a
 * failure, and with `--present` leaves its steps out by name.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { makeAccount, Service, unlimited } from '../test/support/binary.ts'
import { temporaryFolder } from '../test/support/folder.ts'

const ROOT = join(import.meta.dir, '..')
const PROGRAMS = join(import.meta.dir, 'clients')
/** Tools and compiled packages stay here for the next run. */
const WORK = join(ROOT, 'dist/clients')

const GENERATOR = 'openapi-generator-cli-7.25.0.jar'
const SPECTRAL = '@stoplight/spectral-cli@6.16.3'
const REDOCLY = '@redocly/cli@2.77.0'
const SCHEMATHESIS = 'schemathesis==4.32.5'
const CASES_MIN = 10_000
/** Operations that can have as many different requests as are asked for. */
const OPERATIONS = 14
const OUTPUT_LINES = 40

interface Run {
  description: string
  service: Service
  apiKey: string
  casesMin: number
}

interface Options {
  cwd?: string
  env?: Record<string, string>
}

/** Resolves to the output of a command. Throws with its last lines if the command fails. */
async function run(words: readonly string[], { cwd = WORK, env = {} }: Options = {}) {
  const child = Bun.spawn([...words], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const texts = [new Response(child.stdout).text(), new Response(child.stderr).text()]
  const output = (await Promise.all(texts)).join('\n').trim()
  if ((await child.exited) === 0) return output
  const last = output.split('\n').slice(-OUTPUT_LINES).join('\n')
  throw new Error(`${words.slice(0, 4).join(' ')} failed:\n${last}`)
}

/** Generates a client. Returns its folder. */
async function generate(generator: string, { description }: Run, more: readonly string[] = []) {
  const folder = join(WORK, generator)
  if (!existsSync(join(WORK, GENERATOR))) {
    const [, name, version] = /^(.*)-([\d.]+)\.jar$/.exec(GENERATOR) ?? []
    const artifact = `-Dartifact=org.openapitools:${name}:${version}`
    await run(['mvn', '-q', '-B', 'dependency:copy', artifact, `-DoutputDirectory=${WORK}`])
  }
  // The generator keeps files that exist.
  rmSync(folder, { recursive: true, force: true })
  const input = ['-i', description, '-o', folder, '-g', generator]
  await run(['java', '-jar', join(WORK, GENERATOR), 'generate', ...input, ...more])
  return folder
}

const program = (name: string, folder: string) => {
  mkdirSync(folder, { recursive: true })
  cpSync(join(PROGRAMS, name), join(folder, name))
}

async function java(on: Run): Promise<string> {
  const cwd = await generate('java', on, ['--library', 'native'])
  program('Main.java', join(cwd, 'src/main/java'))
  await run(['mvn', '-q', '-B', 'test-compile', '-DskipTests'], { cwd })
  const list = join(cwd, 'target/classpath')
  await run(['mvn', '-q', '-B', 'dependency:build-classpath', `-Dmdep.outputFile=${list}`], { cwd })
  const classes = `${join(cwd, 'target/classes')}:${readFileSync(list, 'utf8')}`
  return run(['java', '-cp', classes, 'Main'], { env: keyOf(on) })
}

async function rust(on: Run): Promise<string> {
  await generate('rust', on)
  const cwd = join(WORK, 'rust-program')
  program('main.rs', join(cwd, 'src'))
  const manifest = [
    '[package]\nname = "program"\nversion = "0.0.0"\nedition = "2021"',
    '[dependencies]\nopenapi = { path = "../rust" }',
    'tokio = { version = "1", features = ["macros", "rt"] }\n',
  ]
  writeFileSync(join(cwd, 'Cargo.toml'), manifest.join('\n'))
  const env = { ...keyOf(on), CARGO_TARGET_DIR: join(WORK, 'rust-target'), RUST_BACKTRACE: '0' }
  return run(['cargo', 'run', '-q'], { cwd, env })
}

async function go(on: Run): Promise<string> {
  const module = ['--git-host', 'hopcode.test', '--git-user-id', 'api', '--git-repo-id', 'client']
  const cwd = await generate('go', on, module)
  program('main.go', join(cwd, 'program'))
  await run(['go', 'mod', 'tidy'], { cwd })
  await run(['go', 'vet', '.', './program'], { cwd })
  return run(['go', 'run', './program'], { cwd, env: keyOf(on) })
}

async function python(on: Run): Promise<string> {
  const client = await generate('python', on)
  const bin = await environment('python-environment')
  await run([join(bin, 'pip'), 'install', '-q', client])
  await run([join(bin, 'python'), '-m', 'compileall', '-q', join(client, 'openapi_client')])
  return run([join(bin, 'python'), join(PROGRAMS, 'main.py')], { env: keyOf(on) })
}

/** The folder of programs of a virtual environment. */
async function environment(name: string): Promise<string> {
  const folder = join(WORK, name)
  if (!existsSync(join(folder, 'bin/pip'))) await run(['python3', '-m', 'venv', folder])
  return join(folder, 'bin')
}

async function typescript(on: Run): Promise<string> {
  await generate('typescript-fetch', on)
  const cwd = join(WORK, 'typescript-program')
  program('main.ts', cwd)
  const compilerOptions = {
    target: 'ES2022',
    module: 'Preserve',
    lib: ['ESNext', 'DOM'],
    strict: true,
    noEmit: true,
    types: ['bun-types'],
    typeRoots: [join(ROOT, 'node_modules')],
    paths: { 'hopcode-client': ['../typescript-fetch/index.ts'] },
  }
  const config = { compilerOptions, files: ['main.ts'] }
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify(config))
  await run([join(ROOT, 'node_modules/.bin/tsc'), '-p', cwd])
  return run([process.execPath, 'main.ts'], { cwd, env: keyOf(on) })
}

const keyOf = ({ apiKey }: Run) => ({ API_KEY: apiKey })

async function spectral({ description }: Run): Promise<string> {
  const rules = join(WORK, 'spectral.json')
  writeFileSync(rules, JSON.stringify({ extends: ['spectral:oas'] }))
  const options = ['--ruleset', rules, '--fail-severity', 'error']
  return run([...(await nodeTool(SPECTRAL, 'spectral')), 'lint', description, ...options])
}

const redocly = async ({ description }: Run): Promise<string> =>
  run([...(await nodeTool(REDOCLY, 'redocly')), 'lint', description])

/** The words that start a program of an npm package. */
async function nodeTool(specification: string, name: string): Promise<string[]> {
  const folder = join(WORK, name)
  mkdirSync(folder, { recursive: true })
  await run(['npm', 'install', '--silent', '--ignore-scripts', '--prefix', folder, specification])
  return [join(folder, 'node_modules/.bin', name)]
}

async function schemathesis({ service, apiKey, casesMin }: Run): Promise<string> {
  const bin = await environment('schemathesis-environment')
  await run([join(bin, 'pip'), 'install', '-q', SCHEMATHESIS])
  const settings = ['--config-file', join(ROOT, 'schemathesis.toml'), 'run']
  const examples = String(Math.ceil(casesMin / OPERATIONS))
  const words = [`${service.url}/docs/json`, '-H', `X-API-Key: ${apiKey}`, '-n', examples]
  // The settings name the hooks from the root folder.
  const env = { HYPOTHESIS_STORAGE_DIRECTORY: join(WORK, 'hypothesis') }
  const output = await run([join(bin, 'schemathesis'), ...settings, ...words], { cwd: ROOT, env })
  const cases = Number(/(\d[\d,]*) generated/.exec(output)?.[1]?.replaceAll(',', ''))
  if (cases >= casesMin) return `${cases} cases, none failed. ${/Seed: \d+/.exec(output)?.[0]}`
  throw new Error(`only ${cases} cases:\n${output.split('\n').slice(-OUTPUT_LINES).join('\n')}`)
}

const STEPS: Readonly<Record<string, (on: Run) => Promise<string>>> = {
  spectral,
  redocly,
  go,
  typescript,
  python,
  java,
  rust,
  schemathesis,
}

const GENERATOR_TOOLS = ['java', 'mvn']
const TOOLS: Readonly<Record<string, readonly string[]>> = {
  go: [...GENERATOR_TOOLS, 'go'],
  typescript: GENERATOR_TOOLS,
  python: [...GENERATOR_TOOLS, 'python3'],
  java: [...GENERATOR_TOOLS, 'javac'],
  rust: [...GENERATOR_TOOLS, 'cargo'],
  schemathesis: ['python3'],
}

/** The steps whose tools are here. Prints why others are left out. */
const present = (names: readonly string[]): string[] =>
  names.filter((name) => {
    const missing = (TOOLS[name] ?? []).filter((tool) => Bun.which(tool) === null)
    if (missing.length > 0) console.log(`${name}: left out, without ${missing.join(', ')}`)
    return missing.length === 0
  })

async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { present: { type: 'boolean' }, cases: { type: 'string' } },
    allowPositionals: true,
  })
  const casesMin = Number(values.cases ?? CASES_MIN)
  const wanted = positionals.length > 0 ? positionals : Object.keys(STEPS)
  const names = values.present ? present(wanted) : wanted
  mkdirSync(WORK, { recursive: true })
  let failed = 0
  for (const name of names) {
    const step = STEPS[name]
    if (!step) throw new Error(`no such step: ${name}. They are ${Object.keys(STEPS).join(', ')}.`)
    // A service of its own: the programs create codes of fixed names.
    using folder = temporaryFolder()
    const settings = unlimited(folder.path)
    const apiKey = await makeAccount(settings)
    await using service = await Service.start(settings)
    const description = join(WORK, 'openapi.json')
    rmSync(description, { force: true })
    await Bun.write(description, await service.fetch('/docs/json'))
    const start = Date.now()
    const result = await step({ description, service, apiKey, casesMin }).then(
      (output) => ({ word: 'passed', output: output.split('\n').slice(-3).join('\n') }),
      (error: unknown) => ({ word: 'FAILED', output: String(error) }),
    )
    if (result.word === 'FAILED') failed++
    const seconds = Math.round((Date.now() - start) / 1000)
    console.log(`${name}: ${result.word} (${seconds} s)\n${result.output}`.trim())
  }
  console.log(`${names.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
