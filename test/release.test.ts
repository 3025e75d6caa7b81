/** What the files of a release say, without the programs in them: `npm run release` makes them. */
import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { configOf, writeImage } from '../scripts/release/image.ts'
import { labelsOfImage, writeDebian } from '../scripts/release.ts'
import { testApp } from './support/app.ts'
import { temporaryFolder } from './support/folder.ts'
import { testWith } from './support/tools.ts'

const ROOT = join(import.meta.dir, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const run = (...words: string[]) => Bun.spawnSync(words).stdout.toString()

/** A program that is quickly packed. */
function smallProgram(folder: string): string {
  const file = join(folder, 'hopcode')
  writeFileSync(file, '#!/bin/sh\n', { mode: 0o755 })
  return file
}

testWith('dpkg-deb')('everything says the version of package.json', async () => {
  using folder = temporaryFolder()
  const { version } = manifest
  expect(/^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1]).toBe(version)

  const words = [process.execPath, join(ROOT, 'src/main.ts'), 'version']
  expect(run(...words)).toBe(`${version}\n`)
  expect(JSON.parse(run(...words, '--json'))).toMatchObject({ version, bun: Bun.version })

  await using app = await testApp()
  const { body } = await app.call('GET', '/docs/json')
  expect((body.info as { version: string }).version).toBe(version)
  const metrics = await fetch(`${app.url}/-/metrics`)
  expect(await metrics.text()).toContain(`version="${version}"`)
  expect(labelsOfImage('abc')['org.opencontainers.image.version']).toBe(version)

  const program = smallProgram(folder.path)
  const debian = await writeDebian({ arch: 'x64' }, program, { epoch: 0, work: folder.path })
  expect(run('dpkg-deb', '-f', debian, 'Version')).toBe(`${version}\n`)
})

testWith('dpkg-deb')(
  'a package of Debian has the unit for its paths, and private settings',
  async () => {
    using folder = temporaryFolder()
    const program = smallProgram(folder.path)
    const write = () => writeDebian({ arch: 'arm64' }, program, { epoch: 0, work: folder.path })
    const first = readFileSync(await write())
    const file = await write()
    expect(readFileSync(file).equals(first)).toBe(true)
    const list = run('dpkg-deb', '-c', file)
    expect(list).toMatch(/^-rw------- root\/root .* \.\/etc\/hopcode\/hopcode\.env$/m)
    expect(list).toMatch(/^-rwxr-xr-x root\/root .* \.\/usr\/bin\/hopcode$/m)
    expect(list).not.toContain('/var/lib')
    const into = join(folder.path, 'unpacked')
    expect(run('dpkg-deb', '-R', file, into)).toBe('')
    const unit = readFileSync(join(into, 'lib/systemd/system/hopcode.service'), 'utf8')
    expect(unit).toContain('\nExecStart=/usr/bin/hopcode serve\n')
    expect(readFileSync(join(into, 'DEBIAN/conffiles'), 'utf8')).toBe('/etc/hopcode/hopcode.env\n')
    expect(run('dpkg-deb', '-f', file, 'Architecture')).toBe('arm64\n')
  },
)

test('an image has the user, volume and health check of the Dockerfile, and is the same each time', async () => {
  using folder = temporaryFolder()
  const dockerfile = read('Dockerfile')
  expect(configOf(dockerfile)).toMatchObject({
    User: '65532:65532',
    Volumes: { '/data': {} },
    Env: ['PATH=/usr/local/bin', 'DATA_DIR=/data'],
    Entrypoint: ['/usr/local/bin/hopcode'],
    Cmd: ['serve'],
    Healthcheck: { Test: ['CMD', '/usr/local/bin/hopcode', 'health'], Interval: 30e9, Retries: 3 },
  })
  const images = []
  for (const name of ['a', 'b']) {
    const scratch = join(folder.path, name)
    const system = join(scratch, 'system')
    mkdirSync(system, { recursive: true })
    const program = smallProgram(scratch)
    const file = join(scratch, 'image.tar')
    const facts = {
      name: 'hopcode',
      version: '1.0.0',
      epoch: 1e9,
      labels: { a: 'b' },
      licences: '',
    }
    const platforms = [{ architecture: 'amd64' as const, program, system }]
    await writeImage(file, platforms, facts, { scratch, dockerfile })
    images.push(file)
  }
  const [one = '', two = ''] = images
  expect(readFileSync(one).equals(readFileSync(two))).toBe(true)
  const json = (path: string) => JSON.parse(run('tar', '-xOf', one, `./${path}`))
  const blob = ({ digest }: { digest: string }) => json(`blobs/${digest.replace(':', '/')}`)
  const manifest = blob(blob(json('index.json').manifests[0]).manifests[0])
  expect(blob(manifest.config).config).toMatchObject({ User: '65532:65532', Labels: { a: 'b' } })
  const layer = `blobs/${manifest.layers[0].digest.replace(':', '/')}`
  const files = run('sh', '-c', `tar -xOf ${one} ./${layer} | tar -tvz --numeric-owner`)
  expect(files).toMatch(/^drwxr-x--- 65532\/65532 .* \.\/data\/$/m)
})
