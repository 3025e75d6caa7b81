import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresServer } from '../../test/support/postgres.ts'
import { type Launch, type Server, startServer } from './server.ts'
import { hopcode, hopcodeSettings, WITHOUT_LIMITS } from './variants.ts'

/** The hosts of one cluster, whose data folders are created by the commands of the service. */
export class ClusterHosts {
  readonly clusterUrl: string
  readonly #program: string[]
  readonly #folder: string
  readonly servers: Server[] = []

  private constructor(program: string[], folder: string, clusterUrl: string) {
    this.#program = program
    this.#folder = folder
    this.clusterUrl = clusterUrl
  }

  /** The first host, with the data in `dataDir`. `folder`: for the data of the others. */
  static async start(
    program: string[],
    { dataDir, folder, postgres }: { dataDir: string; folder: string; postgres: PostgresServer },
  ): Promise<ClusterHosts> {
    const clusterUrl = postgres.url(await postgres.createDatabase())
    const hosts = new ClusterHosts(program, folder, clusterUrl)
    hosts.#run([...program, 'cluster', 'init'], dataDir)
    hosts.servers.push(await startServer(hosts.launch(dataDir)))
    return hosts
  }

  launch(dataDir: string): Launch {
    return hopcode(this.#program, dataDir, { ...WITHOUT_LIMITS, CLUSTER_URL: this.clusterUrl })
  }

  dataDirOf(host: number): string {
    return join(this.#folder, `host-${host}`)
  }

  /** A further host, from a backup of the first one. Returns the seconds until it is ready. */
  async join(firstDir: string): Promise<number> {
    const dataDir = this.dataDirOf(this.servers.length)
    mkdirSync(dataDir)
    const startedAt = performance.now()
    const hopcodeWords = this.#program.map((word) => `'${word}'`).join(' ')
    const script = `DATA_DIR='${firstDir}' ${hopcodeWords} backup --for-join - |
      ${hopcodeWords} cluster join -`
    this.#run(['bash', '-o', 'pipefail', '-c', script], dataDir)
    this.servers.push(await startServer(this.launch(dataDir)))
    return (performance.now() - startedAt) / 1000
  }

  async stop(): Promise<void> {
    for (const server of this.servers.splice(0)) await server.stop()
  }

  #run(words: string[], dataDir: string): void {
    const { PATH = '', HOME = '' } = process.env
    const own = { PATH, HOME, CLUSTER_URL: this.clusterUrl }
    const env = { ...hopcodeSettings(dataDir, 0), ...own }
    const ran = Bun.spawnSync(words, { cwd: this.#folder, env })
    if (ran.exitCode !== 0) throw new Error(`${words.join(' ')}: ${ran.stderr}`)
  }
}
