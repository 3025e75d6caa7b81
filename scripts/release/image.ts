/** The container image of a release: one OCI archive for several platforms, without a daemon. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { $ } from 'bun'

export interface Platform {
  architecture: 'amd64' | 'arm64'
  /** The compiled program. */
  program: string
  /** The folder of `writeSystem`, of which the program's folder is a layer above. */
  system: string
}

export interface ImageFacts {
  name: string
  version: string
  /** Of the commit: seconds since 1970. */
  epoch: number
  labels: Readonly<Record<string, string>>
  licences: string
}

const SECOND_NS = 1e9
const OCI = 'application/vnd.oci.image'

/** Options of GNU tar with which the same files give the same archive. */
export const sameTar = (epoch: number) => ['--sort=name', `--mtime=@${epoch}`, '--numeric-owner']

/** The last stage of the Dockerfile, as the configuration of an image. */
export function configOf(dockerfile: string) {
  const stage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  const word = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(stage)?.[1] ?? ''
  const seconds = (name: string) =>
    Number(new RegExp(`--${name}=(\\d+)s`).exec(stage)?.[1]) * SECOND_NS
  const test = /^HEALTHCHECK [^\n]*\n\s*CMD (.*)$/m.exec(stage)?.[1] ?? ''
  return {
    User: word('USER'),
    ExposedPorts: { [`${word('EXPOSE')}/tcp`]: {} },
    Env: ['PATH=/usr/local/bin', word('ENV')],
    Entrypoint: JSON.parse(word('ENTRYPOINT')) as string[],
    Cmd: JSON.parse(word('CMD')) as string[],
    Volumes: { [word('VOLUME')]: {} },
    StopSignal: word('STOPSIGNAL'),
    Healthcheck: {
      Test: ['CMD', ...(JSON.parse(test) as string[])],
      Interval: seconds('interval'),
      Timeout: seconds('timeout'),
      StartPeriod: seconds('start-period'),
      Retries: Number(/--retries=(\d+)/.exec(stage)?.[1]),
    },
  }
}

/** Downloads packages of Debian with apt, also of another architecture, and unpacks them. */
async function unpackDebian(architecture: string, names: readonly string[], folder: string) {
  for (const part of ['lists/partial', 'archives/partial', 'root']) {
    mkdirSync(join(folder, part), { recursive: true })
  }
  const options = Object.entries({
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Dir::State': folder,
    'Dir::State::status': '/dev/null',
    'Dir::Cache': folder,
  }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  await $`apt-get ${options} update`.quiet()
  await $`apt-get ${options} download ${names}`.cwd(folder).quiet()
  for (const file of new Bun.Glob('*.deb').scanSync(folder)) {
    await $`dpkg-deb -x ${join(folder, file)} ${join(folder, 'root')}`
  }
  return join(folder, 'root')
}

/**
 * Files of the lower layer: what the program loads, and what it and its libraries expect. Needs
 * apt. `scratch`: a folder for packages.
 */
export async function writeSystem(
  { architecture, program, system: root }: Platform,
  scratch: string,
): Promise<void> {
  const packages = ['libc6', 'ca-certificates']
  const debian = await unpackDebian(architecture, packages, scratch)
  const put = (path: string, contents: string | Uint8Array, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), contents, { mode })
  }
  const find = (pattern: string) =>
    [...new Bun.Glob(pattern).scanSync({ cwd: debian, followSymlinks: false })].sort()
  const elf = await $`readelf -dl ${program}`.text()
  const loader = /program interpreter: ([^\]]+)\]/.exec(elf)?.[1] ?? ''
  for (const [, name = ''] of elf.matchAll(/\(NEEDED\).*\[(.*)\]/g)) {
    const [file = ''] = find(`**/${name}`)
    const target = name === basename(loader) ? loader : `/lib/${name}`
    put(target, readFileSync(join(debian, file)), 0o755)
  }
  const certificates = find('usr/share/ca-certificates/mozilla/*.crt')
  const bundle = certificates.map((file) => readFileSync(join(debian, file), 'utf8'))
  put('etc/ssl/certs/ca-certificates.crt', bundle.join(''))
  put('etc/passwd', 'root:x:0:0::/:/none\nhopcode:x:65532:65532::/data:/none\n')
  put('etc/group', 'root:x:0:\nhopcode:x:65532:\n')
  for (const name of packages) {
    const path = `usr/share/doc/${name}/copyright`
    put(path, readFileSync(join(debian, path)))
  }
  mkdirSync(join(root, 'tmp'), { mode: 0o777 })
}

/** Writes the archive to `file`. `scratch`: a folder for its parts. */
export async function writeImage(
  file: string,
  platforms: readonly Platform[],
  { name, version, epoch, labels, licences }: ImageFacts,
  { scratch, dockerfile }: { scratch: string; dockerfile: string },
): Promise<void> {
  const layout = join(scratch, 'layout')
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
  const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  const addBlob = (mediaType: string, content: Uint8Array<ArrayBuffer> | object) => {
    const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content))
    writeFileSync(join(layout, 'blobs/sha256', sha256(bytes)), bytes)
    return { mediaType, digest: `sha256:${sha256(bytes)}`, size: bytes.length }
  }
  const created = new Date(epoch * 1000).toISOString()
  const config = configOf(dockerfile)
  const [owner = ''] = config.User.split(':')
  const [volume = ''] = Object.keys(config.Volumes)

  /** `own`: a folder in `root` that belongs to the user of the program. */
  const addLayer = async (root: string, own?: string) => {
    const archive = `${root}.tar`
    const same = sameTar(epoch)
    const owned = ['--owner=0', '--group=0', ...(own ? [`--exclude=./${own}`] : [])]
    await $`tar ${same} ${owned} -C ${root} -cf ${archive} .`
    const user = [`--owner=${owner}`, `--group=${owner}`]
    if (own) await $`tar ${same} ${user} -C ${root} -rf ${archive} ./${own}`
    const tar = await Bun.file(archive).bytes()
    const blob = addBlob(`${OCI}.layer.v1.tar+gzip`, Bun.gzipSync(tar, { level: 6 }))
    return { blob, diffId: `sha256:${sha256(tar)}` }
  }

  const manifests = []
  const docker = []
  for (const { architecture, program, system } of platforms) {
    const own = join(scratch, `program-${architecture}`)
    mkdirSync(join(system, volume), { recursive: true, mode: 0o750 })
    await $`install -D -m 755 ${program} ${join(own, config.Entrypoint[0] ?? '')}`
    mkdirSync(join(own, `usr/share/doc/${name}`), { recursive: true })
    writeFileSync(join(own, `usr/share/doc/${name}/licences.txt`), licences)
    const layers = [await addLayer(system, volume.slice(1)), await addLayer(own)]
    const about = addBlob(`${OCI}.config.v1+json`, {
      created,
      architecture,
      os: 'linux',
      config: { ...config, Labels: labels },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    })
    const manifest = addBlob(`${OCI}.manifest.v1+json`, {
      schemaVersion: 2,
      mediaType: `${OCI}.manifest.v1+json`,
      config: about,
      layers: layers.map(({ blob }) => blob),
      annotations: labels,
    })
    manifests.push({ ...manifest, platform: { architecture, os: 'linux' } })
    const path = ({ digest }: { digest: string }) => `blobs/${digest.replace(':', '/')}`
    docker.push({
      Config: path(about),
      RepoTags: [`${name}:${version}-${architecture}`],
      Layers: layers.map(({ blob }) => path(blob)),
    })
  }
  const index = { schemaVersion: 2, mediaType: `${OCI}.index.v1+json`, annotations: labels }
  const all = addBlob(index.mediaType, { ...index, manifests })
  const tags = {
    'io.containerd.image.name': `docker.io/library/${name}:${version}`,
    'org.opencontainers.image.ref.name': `${name}:${version}`,
  }
  const write = (path: string, content: object) =>
    writeFileSync(join(layout, path), JSON.stringify(content))
  write('oci-layout', { imageLayoutVersion: '1.0.0' })
  write('index.json', { ...index, manifests: [{ ...all, annotations: tags }] })
  // Docker without its store of containerd reads this file.
  write('manifest.json', docker)
  await $`tar ${sameTar(epoch)} --owner=0 --group=0 -C ${layout} -cf ${file} .`
}
