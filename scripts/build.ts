/** Compiles the program: `dist/hopcode` for this machine, or with `--all` one file per Linux. */
import { mkdir, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

const ROOT = dirname(import.meta.dir)
const MAIN = 'src/main.ts'

interface Product {
  outfile: string
  /** Default: this machine. Bun downloads the runtime of another platform as a package. */
  target?: Bun.Build.CompileTarget
}

const HERE: readonly Product[] = [{ outfile: 'dist/hopcode' }]
const EVERY_LINUX: readonly Product[] = [
  { outfile: 'dist/hopcode-linux-x64', target: 'bun-linux-x64' },
  { outfile: 'dist/hopcode-linux-arm64', target: 'bun-linux-arm64' },
]

const WASM_URL = 'new URL("harfbuzz.wasm",import.meta.url).href'

/** HarfBuzz reads its WebAssembly from a file beside it: in the binary, from an embedded one. */
const harfbuzz: Bun.BunPlugin = {
  name: 'harfbuzz',
  setup: (build) => {
    build.onLoad({ filter: /harfbuzzjs[\\/]dist[\\/]harfbuzz\.js$/ }, async ({ path }) => {
      const source = await Bun.file(path).text()
      if (!source.includes(WASM_URL)) throw new Error(`${path} finds its WebAssembly otherwise`)
      const file = `import wasmFile from './harfbuzz.wasm' with { type: 'file' }`
      return { contents: `${file}\n${source.replace(WASM_URL, 'wasmFile')}`, loader: 'js' }
    })
  },
}

/** The entry modules of the threads; no other module imports them. */
const workerEntries = () => [...new Bun.Glob('src/threads/*.ts').scanSync(ROOT)].sort()

async function build({ outfile, target }: Product): Promise<void> {
  const { outputs } = await Bun.build({
    entrypoints: [MAIN, ...workerEntries()].map((file) => `${ROOT}/${file}`),
    // Entries keep their path below src/, with main at the root of the embedded files, so that
    // `new URL('./threads/x.ts', import.meta.url)` in src/*.ts works as in the source tree.
    root: `${ROOT}/src`,
    target: 'bun',
    plugins: [harfbuzz],
    format: 'esm',
    minify: true,
    bytecode: true,
    // Embedded, so that stack traces contain source files and lines.
    sourcemap: 'inline',
    define: { 'process.env.NODE_ENV': '"production"' },
    compile: {
      ...(target && { target }),
      outfile: `${ROOT}/${outfile}`,
      // A binary reads its settings only from the environment, not from files in its folder.
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
  // A failed build is an AggregateError with one error per place.
  const causes = error instanceof AggregateError ? error.errors : [error]
  for (const cause of causes) console.error(cause)
  process.exitCode = 1
}
