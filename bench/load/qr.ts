// How many QR images per second are created, and what is the effect on redirects?
// npm run bench -- qr --seconds 3 --rounds 5
import jsQR from 'jsqr'
import { PNG } from 'pngjs'
import { main, measureVariants, milliseconds, type Plan, value } from '../lib/figures.ts'
import { createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import {
  CLOSED_METRICS,
  measureClosed,
  measureOpen,
  OPEN_METRICS,
  SLEEP_MS,
  sendClosed,
} from '../lib/load-parts.ts'
import { followLink, HitCheck } from '../lib/redirect-check.ts'
import { targetsOf } from '../lib/redirect-round.ts'
import type { Target } from '../lib/request.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { BASE_URL, hopcode, type Link, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const CODES = 5
const SIZES = [512, 2048]
const CONNECTIONS = 4
const REDIRECTS_PER_SECOND = 1000

interface Variant {
  name: string
  /** Pixels of the images that are created meanwhile; absent: none. */
  size?: number
}

interface Setup {
  launch: Launch
  apiKey: string
  links: readonly Link[]
  /** Every decoded image by its path: in later rounds it must be the same. */
  images: Map<string, Buffer>
}

export const qr: Scenario = {
  name: 'qr',
  question: 'How many QR images per second are created, and what is the effect on redirects?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await emptyWorkspace(options)
  const { program, dataDir } = workspace
  const apiKey = createAccount(program, dataDir)
  const launch = hopcode(program, dataDir, WITHOUT_LIMITS)
  const links = await makeLinks(launch, apiKey)
  const setup = { launch, apiKey, links, images: new Map<string, Buffer>() }
  const contenders: Variant[] = [
    { name: 'redirects' },
    ...SIZES.map((size) => ({ name: `and ${size} px`, size })),
  ]
  const plan: Plan<Variant> = {
    variants: contenders,
    measure: (variant) => measureRound(variant, setup, options),
    baseline: 'redirects',
    settings: { imageConnections: CONNECTIONS, codes: CODES },
    // Images and redirects are not each other's baseline.
    metrics: [...CLOSED_METRICS.map((metric) => ({ ...metric, ratio: false })), ...OPEN_METRICS],
    figures: {
      'QR images/s of 512 px': main(value('and 512 px', 'requestsPerSecond', ' /s')),
      'p99 of redirects beside images of 512 px': milliseconds('and 512 px', 'openP99', 1),
      'QR images/s of 2048 px': value('and 2048 px', 'requestsPerSecond', ' /s'),
      'p99 of redirects beside images of 2048 px': milliseconds('and 2048 px', 'openP99', 1),
    },
    notes: [
      `Closed loop: GET /api/qr/<code>?size=<px> of ${CODES} codes on ${CONNECTIONS} connections.`,
      `Open loop: redirects of warm codes, ${REDIRECTS_PER_SECOND} a second.`,
      'Each image was decoded before and compared afterwards; during the load the length of ' +
        'every one was judged. The CPU figures hold the redirects too.',
    ],
  }
  return await measureVariants(plan, options, say)
}

async function makeLinks(launch: Launch, apiKey: string): Promise<Link[]> {
  await using server = await startServer(launch)
  const urls = Array.from({ length: CODES }, (_, n) => `https://example.com/poster/${n}`)
  const links = await new HopcodeClient(server.origin, apiKey).createLinks(urls)
  await server.stop()
  return links
}

async function measureRound(
  { size }: Variant,
  { launch, apiKey, links, images }: Setup,
  { seconds, warmUp, connections }: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const hits = new HitCheck(new HopcodeClient(server.origin, apiKey), links)
  const drawAll = async () =>
    size === undefined ? [] : await drawEach(server, links, size, images)
  const targets = await drawAll()
  const redirectTargets = targetsOf(links)
  for (const link of links) await followLink(server, link)
  const warmLoad = { targets: redirectTargets, connections: 8, seconds: Math.max(1, warmUp) }
  await sendClosed(server, warmLoad)
  if (targets.length > 0) await sendClosed(server, { ...warmLoad, targets })

  await hits.begin()
  const [followed, drawn] = await Promise.all([
    measureOpen(server, {
      targets: redirectTargets,
      connections,
      seconds,
      ratePerSecond: REDIRECTS_PER_SECOND,
      sleepMs: SLEEP_MS,
    }),
    targets.length > 0
      ? measureClosed(server, { targets, connections: CONNECTIONS, seconds })
      : undefined,
  ])
  await hits.requireExactly(followed.result.rightByTarget)
  await drawAll()
  await server.stop()
  return { figures: { ...drawn?.figures, ...followed.figures } }
}

/**
 * Requests the image of every link and decodes it, or compares it with the decoded one. Throws if
 * an image has another destination.
 */
async function drawEach(
  server: Server,
  links: readonly Link[],
  size: number,
  images: Map<string, Buffer>,
): Promise<Target[]> {
  const targets: Target[] = []
  for (const { code } of links) {
    const path = `/api/qr/${code}?size=${size}`
    const answer = await fetch(server.origin + path)
    const image = Buffer.from(await answer.arrayBuffer())
    const type = answer.headers.get('content-type')
    if (answer.status !== 200 || type !== 'image/png') {
      throw new Error(`${path} answered ${answer.status}, ${type}: ${image.subarray(0, 200)}`)
    }
    const known = images.get(path)
    if (known && !known.equals(image)) throw new Error(`${path} is another image than before`)
    if (!known) requireCode(image, size, `${BASE_URL}/${code}`)
    images.set(path, image)
    targets.push({ path, status: 200, bodyBytes: image.length })
  }
  return targets
}

function requireCode(image: Buffer, size: number, shortUrl: string): void {
  const { width, height, data } = PNG.sync.read(image)
  if (width !== size || height !== size) throw new Error(`an image is ${width} by ${height} px`)
  const text = jsQR(new Uint8ClampedArray(data), width, height)?.data
  if (text !== shortUrl) throw new Error(`an image leads to ${text}, not to ${shortUrl}`)
}
