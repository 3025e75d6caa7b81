/** Makes the program one file: `dist/hopcode` for this machine, or with `--all` one a Linux. */
import { mkdir, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

const ROOT = dirname(import.meta.dir)
const MAIN = 'src/main.ts'

interface Product {
  outfile: string
  /** This machine's own where absent. Bun fetches another's runtime as a package. */
  target?: Bun.Build.CompileTarget
}

const HERE: readonly Product[] = [{ outfile: 'dist/hopcode' }]
const EVERY_LINUX: readonly Product[] = [
  { outfile: 'dist/hopcode-linux-x64', target: 'bun-linux-x64' },
  { outfile: 'dist/hopcode-linux-arm64', target: 'bun-linux-arm64' },
]

/** Each thread's module, which no other imports. */
const workerEntries = () => [...new Bun.Glob('src/threads/*.ts').scanSync(ROOT)].sort()

async function build({ outfile, target }: Product): Promise<void> {
  const { outputs } = await Bun.build({
    entrypoints: [MAIN, ...workerEntries()].map((file) => `${ROOT}/${file}`),
    // Workers keep their path below src/, and main lies at the root of the embedded files:
    // `new URL('./threads/x.ts', import.meta.url)` in src/*.ts finds them there as in the tree.
    root: `${ROOT}/src`,
    target: 'bun',
    format: 'esm',
    minify: true,
    bytecode: true,
    // Embedded, so that a stack trace names our files and lines.
    sourcemap: 'inline',
    define: { 'process.env.NODE_ENV': '"production"' },
    compile: {
      ...(target && { target }),
      outfile: `${ROOT}/${outfile}`,
      // A binary takes its settings from the environment alone, not from the folder it stands in.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
  })
  for (const { path, kind } of outputs) if (kind === 'sourcemap') await rm(path)
  const bytes = await Bun.file(`${ROOT}/${outfile}`).bytes()
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  console.log(`${hash}  ${basename(outfile)}  ${(bytes.length / 1e6).toFixed(1)} MB`)
}

async function main(args: readonly string[]): Promise<void> {
  const unknown = args.find((arg) => arg !== '--all')
  if (unknown) throw new Error(`unknown argument ${unknown}: there is only --all`)
  await mkdir(`${ROOT}/dist`, { recursive: true })
  for (const product of args.includes('--all') ? EVERY_LINUX : HERE) await build(product)
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  // A failed bundle is an AggregateError that holds one message for each place.
  const causes = error instanceof AggregateError ? error.errors : [error]
  for (const cause of causes) console.error(cause)
  process.exitCode = 1
}
