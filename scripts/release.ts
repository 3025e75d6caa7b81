/**
 * Makes the files of a release in dist/release/, and starts each one before it is listed there:
 * `npm run release`. docs/releases.md says what it needs. `MUSL_ROOTS`: a folder with `x64/lib` and
 * `arm64/lib`, each with musl and libstdc++ of an Alpine.
 */

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { $ } from 'bun'
import manifest from '../package.json' with { type: 'json' }
import { build } from './build.ts'
import { licencesText, readLock } from './licences.ts'
import { sameTar, writeImage, writeSystem } from './release/image.ts'
import { containerRunner, findContainers, type Runner, startOnce } from './release/start.ts'

const ROOT = join(import.meta.dir, '..')
const OPERATIONS = join(ROOT, 'docs/operations')
const PACKAGING = join(import.meta.dir, 'release')
const OUT = join(ROOT, 'dist/release')
/** Unfinished files. */
const WORK = join(ROOT, 'dist/release-work')
const { name, version, description } = manifest
const MAINTAINER = 'The Hopcode authors <hopcode@hop.example>'

interface Target {
  arch: 'x64' | 'arm64'
  isMusl: boolean
}

const TARGETS: readonly Target[] = [false, true].flatMap((isMusl) =>
  (['x64', 'arm64'] as const).map((arch) => ({ arch, isMusl })),
)
const platformOf = ({ arch, isMusl }: Target) => `linux-${arch}${isMusl ? '-musl' : ''}`
/** The names of processors in Debian and in images, in packages of Bun, and in qemu. */
const NAMES = {
  x64: { debian: 'amd64', bun: 'x64', qemu: 'x86_64' },
  arm64: { debian: 'arm64', bun: 'aarch64', qemu: 'aarch64' },
} as const

const sha256 = (file: string) =>
  new Bun.CryptoHasher('sha256').update(readFileSync(file)).digest('hex')

function write(path: string, contents: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, contents, { mode })
}

/** The runtime of a platform: the package with the hash in bun.lock. */
async function findRuntime({ arch, isMusl }: Target): Promise<string> {
  const [nameAndVersion = '', , , integrity = ''] =
    readLock().get(`@oven/bun-linux-${NAMES[arch].bun}${isMusl ? '-musl' : ''}`) ?? []
  const folder = join(ROOT, 'dist/runtimes', nameAndVersion.replaceAll('/', '-'))
  const file = join(folder, 'package.tgz')
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true })
    const packed = (await $`npm pack --silent ${nameAndVersion}`.cwd(folder).text()).trim()
    renameSync(join(folder, packed), file)
  }
  const hash = new Bun.CryptoHasher('sha512').update(readFileSync(file)).digest('base64')
  if (`sha512-${hash}` !== integrity) throw new Error(`${file} is not what bun.lock names`)
  await $`tar -xzf ${file} -C ${folder}`
  return join(folder, 'package/bin/bun')
}

/** This version's section of the changelog. */
function changes(): string {
  const [, section] = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(
    new RegExp(`^## ${RegExp.escape(version)}.*$`, 'm'),
  )
  if (!section) throw new Error(`CHANGELOG.md has no section ${version}`)
  return `${name} ${version}\n\n${section.split(/^## /m)[0]?.trim()}\n`
}

const CONFIGURATIONS = readdirSync(OPERATIONS).filter((file) =>
  /^(Caddyfile|nginx.*|haproxy\.cfg|domains\.caddy)$/.test(file),
)
const COMPLETIONS = { bash: 'hopcode', zsh: '_hopcode', fish: 'hopcode.fish' }

const completion = (shell: string) =>
  $`${process.execPath} ${join(ROOT, 'src/main.ts')} completion ${shell}`.text()

async function writeTarball(target: Target, program: string, epoch: number): Promise<string> {
  const platform = platformOf(target)
  const top = `${name}-${version}-${platform}`
  const folder = join(WORK, 'tarballs', top)
  mkdirSync(folder, { recursive: true })
  for (const file of [...CONFIGURATIONS, 'hop', 'hopcode.env', 'hopcode.service']) {
    cpSync(join(OPERATIONS, file), join(folder, file))
  }
  cpSync(program, join(folder, name))
  for (const [shell, file] of Object.entries(COMPLETIONS)) {
    write(join(folder, 'completions', file), await completion(shell))
  }
  write(join(folder, 'licences.txt'), licencesText({ common: 'included' }))
  const readme = readFileSync(join(PACKAGING, 'README'), 'utf8')
  const words = { VERSION: version, PLATFORM: platform }
  write(
    join(folder, 'README'),
    readme.replace(/VERSION|PLATFORM/g, (word) => words[word as never]),
  )
  const file = join(WORK, `${top}.tar.gz`)
  const options = [...sameTar(epoch), '--owner=0', '--group=0', '--use-compress-program=gzip -6n']
  await $`tar ${options} -C ${dirname(folder)} -cf ${file} ${top}`
  return file
}

/** Lines of a description of Debian. */
const wrapped = (text: string) => text.replace(/(.{1,70})(?: |$)/g, ' $1\n').trimEnd()

/** `work`: a folder for its parts, and for the package. */
export async function writeDebian(
  { arch }: Pick<Target, 'arch'>,
  program: string,
  { epoch, work = WORK }: { epoch: number; work?: string },
): Promise<string> {
  const { debian } = NAMES[arch]
  const root = join(work, `debian-${debian}`)
  const doc = join(root, 'usr/share/doc', name)
  const gzip = (text: string) => Bun.gzipSync(Buffer.from(text), { level: 9 })
  const operations = (file: string) => readFileSync(join(OPERATIONS, file), 'utf8')
  write(join(root, 'usr/bin', name), readFileSync(program), 0o755)
  write(join(root, 'usr/bin/hop'), operations('hop'), 0o755)
  const unit = operations('hopcode.service').replace(/^# \/etc.*\n/, '')
  write(
    join(root, 'lib/systemd/system/hopcode.service'),
    unit.replace('/usr/local/bin', '/usr/bin'),
  )
  write(join(root, 'etc/hopcode/hopcode.env'), operations('hopcode.env'), 0o600)
  for (const file of CONFIGURATIONS) write(join(doc, 'examples', file), operations(file))
  const places = {
    bash: 'bash-completion/completions',
    zsh: 'zsh/vendor-completions',
    fish: 'fish/vendor_completions.d',
  }
  for (const [shell, file] of Object.entries(COMPLETIONS)) {
    const place = places[shell as keyof typeof places]
    write(join(root, 'usr/share', place, file), await completion(shell))
  }
  write(join(doc, 'copyright'), licencesText({ common: 'named' }))
  write(join(doc, 'NEWS.gz'), gzip(changes()))
  const date = new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')
  const head = `${name} (${version}) stable; urgency=medium`
  const entry = `${head}\n\n  * See NEWS.gz.\n\n -- ${MAINTAINER}  ${date}\n`
  write(join(doc, 'changelog.gz'), gzip(entry))
  const overrides = readFileSync(join(PACKAGING, 'lintian-overrides'))
  write(join(root, 'usr/share/lintian/overrides', name), overrides)
  const control = join(root, 'DEBIAN')
  for (const script of ['postinst', 'prerm', 'postrm']) {
    write(join(control, script), readFileSync(join(PACKAGING, script)), 0o755)
  }
  write(join(control, 'conffiles'), '/etc/hopcode/hopcode.env\n')
  const files = [...new Bun.Glob('{usr,lib}/**').scanSync(root)].sort()
  write(join(control, 'md5sums'), await $`md5sum ${files}`.cwd(root).text())
  const bytes = files.reduce((sum, file) => sum + statSync(join(root, file)).size, 0)
  const fields = {
    Package: name,
    Version: version,
    Section: 'web',
    Priority: 'optional',
    Architecture: debian,
    Maintainer: MAINTAINER,
    'Installed-Size': Math.ceil(bytes / 1024),
    Depends: 'adduser, libc6 (>= 2.17)',
    Description: `short links and QR codes in one program\n${wrapped(description)}`,
  }
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`)
  write(join(control, 'control'), lines.join(''))
  const file = join(work, `${name}_${version}_${debian}.deb`)
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(epoch) }
  await $`dpkg-deb -Zxz -z2 --root-owner-group --build ${root} ${file}`.env(env).quiet()
  return file
}

/** Libraries of the image, with which qemu also runs the other programs. */
const systemOf = (arch: Target['arch']) => join(WORK, `system-${NAMES[arch].debian}`)

/** How a program of a target is run here, or why it cannot be. */
function runnerOf({ arch, isMusl }: Target, program: string): Runner | string {
  if (!isMusl && process.arch === arch) return { words: (args) => [program, ...args] }
  const qemu = `qemu-${NAMES[arch].qemu}-static`
  const { MUSL_ROOTS = '' } = process.env
  const root = isMusl ? join(MUSL_ROOTS, arch) : systemOf(arch)
  if (!Bun.which(qemu)) return `${qemu} is missing`
  if (!existsSync(join(root, 'lib'))) return 'MUSL_ROOTS has no libraries of Alpine'
  return { words: (args) => [qemu, '-L', root, program, ...args] }
}

const lines: string[] = []

/** Starts what is in an unfinished file, and lists it. */
async function release(file: string, runner: Runner | string): Promise<void> {
  const startedAt = performance.now()
  if (typeof runner !== 'string') await startOnce(runner, version)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const how = typeof runner === 'string' ? `NOT STARTED: ${runner}` : `started, ${seconds} s`
  const mb = (statSync(file).size / 1e6).toFixed(1)
  renameSync(file, join(OUT, basename(file)))
  lines.push(`${basename(file).padEnd(42)} ${mb.padStart(6)} MB  ${how}`)
  console.log(lines.at(-1))
}

export const labelsOfImage = (revision: string) => ({
  'org.opencontainers.image.title': name,
  'org.opencontainers.image.description': description,
  'org.opencontainers.image.version': version,
  'org.opencontainers.image.licenses': manifest.license,
  'org.opencontainers.image.revision': revision,
})

async function releaseImage(programs: readonly [Target, string][], epoch: number): Promise<void> {
  const file = join(WORK, `${name}-${version}-image.tar`)
  const labels = labelsOfImage((await $`git describe --always --dirty`.text()).trim())
  const platforms = programs.flatMap(([{ arch, isMusl }, program]) =>
    isMusl ? [] : { architecture: NAMES[arch].debian, program, system: systemOf(arch) },
  )
  for (const platform of platforms) {
    await writeSystem(platform, join(WORK, `apt-${platform.architecture}`))
  }
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  const licences = licencesText({ common: 'included' })
  const facts = { name, version, epoch, labels, licences }
  await writeImage(file, platforms, facts, { scratch: join(WORK, 'image'), dockerfile })
  const hasTools = Bun.which('skopeo') && findContainers()
  for (const { architecture } of hasTools ? platforms : []) {
    const words = ['--override-arch', architecture, 'inspect', `oci-archive:${file}`]
    const { Labels, Architecture } = await $`skopeo ${words}`.json()
    const isRight = Architecture === architecture && Bun.deepEquals(Labels, labels)
    if (!isRight) throw new Error(`skopeo finds another image of ${architecture}`)
  }
  const folder = join(WORK, 'container')
  await release(
    file,
    hasTools ? await containerRunner(file, folder) : 'skopeo, runc or crun is missing',
  )
}

async function main(): Promise<void> {
  const startedAt = performance.now()
  process.umask(0o022)
  for (const folder of [OUT, WORK]) rmSync(folder, { recursive: true, force: true })
  mkdirSync(OUT, { recursive: true })
  const epoch = Number(await $`git log -1 --format=%ct`.text())
  const programs: [Target, string][] = []
  for (const target of TARGETS) {
    const outfile = `dist/release-work/programs/${platformOf(target)}/${name}`
    const executablePath = await findRuntime(target)
    await build({ outfile, target: `bun-${platformOf(target)}` as never, executablePath })
    programs.push([target, join(ROOT, outfile)])
  }
  // First, because its libraries are those with which qemu runs the other programs.
  await releaseImage(programs, epoch)
  const unpacked = join(WORK, 'unpacked')
  mkdirSync(unpacked)
  for (const [target, program] of programs) {
    const tarball = await writeTarball(target, program, epoch)
    await $`tar -xzf ${tarball} -C ${unpacked}`
    const folder = join(unpacked, basename(tarball, '.tar.gz'))
    await release(tarball, runnerOf(target, join(folder, name)))
    if (target.isMusl) continue
    const debian = await writeDebian(target, program, { epoch })
    if (Bun.which('lintian')) await $`lintian --fail-on error ${debian}`
    await $`dpkg-deb -x ${debian} ${join(unpacked, basename(debian))}`
    await release(debian, runnerOf(target, join(unpacked, basename(debian), 'usr/bin', name)))
  }
  write(join(OUT, 'CHANGES'), changes())
  const files = readdirSync(OUT).sort()
  const sums = files.map((file) => `${sha256(join(OUT, file))}  ${file}\n`)
  write(join(OUT, 'SHA256SUMS'), sums.join(''))
  rmSync(WORK, { recursive: true })
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
  console.log(
    `\n${files.length + 1} files in dist/release, in ${minutes} minutes.\n${sums.join('')}`,
  )
}

$.cwd(ROOT)
if (import.meta.main) await main()
