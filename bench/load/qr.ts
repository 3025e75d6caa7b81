// How many QR images per second are created?
// npm run bench -- qr --seconds 3 --rounds 5
import jsQR from 'jsqr'
import { PNG } from 'pngjs'
import { main, measureVariants, type Plan, value } from '../lib/figures.ts'
import { createAccount, HopcodeClient } from '../lib/hopcode-client.ts'
import { CLOSED_METRICS, measureClosed, sendClosed } from '../lib/load-parts.ts'
import type { Target } from '../lib/request.ts'
import type { Progress, RoundResult } from '../lib/rounds.ts'
import type { Findings, LoadOptions, Scenario } from '../lib/scenario.ts'
import { type Launch, type Server, startServer } from '../lib/server.ts'
import { BASE_URL, hopcode, type Link, WITHOUT_LIMITS } from '../lib/variants.ts'
import { emptyWorkspace } from '../lib/workspace.ts'

const CODES = 5
const VARIANTS: readonly Variant[] = [
  { name: '512 px', size: 512 },
  { name: '2048 px', size: 2048 },
  { name: '512 px with caption', size: 512, caption: '1' },
]
const CONNECTIONS = 4

interface Variant {
  name: string
  /** Pixels of the images. */
  size: number
  /** As in the query. */
  caption?: string | undefined
}

interface Setup {
  launch: Launch
  links: readonly Link[]
  /** Every decoded image by its path: in later rounds it must be the same. */
  images: Map<string, Buffer>
}

export const qr: Scenario = {
  name: 'qr',
  question: 'How many QR images per second are created?',
  run,
}

async function run(options: LoadOptions, say: Progress): Promise<Findings> {
  using workspace = await emptyWorkspace(options)
  const { program, dataDir } = workspace
  const apiKey = createAccount(program, dataDir)
  const launch = hopcode(program, dataDir, WITHOUT_LIMITS)
  const links = await makeLinks(launch, apiKey)
  const setup = { launch, links, images: new Map<string, Buffer>() }
  const plan: Plan<Variant> = {
    variants: VARIANTS,
    measure: (variant) => measureRound(variant, setup, options),
    settings: { imageConnections: CONNECTIONS, codes: CODES },
    metrics: CLOSED_METRICS,
    figures: {
      'QR images/s of 512 px': main(value('512 px', 'requestsPerSecond', ' /s')),
      'QR images/s of 2048 px': value('2048 px', 'requestsPerSecond', ' /s'),
      'QR images/s of 512 px with a caption': value(
        '512 px with caption',
        'requestsPerSecond',
        ' /s',
      ),
    },
    notes: [
      `Closed loop: GET /api/qr/<code>?size=<px> of ${CODES} codes on ${CONNECTIONS} connections.`,
      'Each image was decoded before and compared afterwards; during the load the length of ' +
        'every one was judged.',
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
  variant: Variant,
  { launch, links, images }: Setup,
  { seconds, warmUp }: LoadOptions,
): Promise<RoundResult> {
  await using server = await startServer(launch)
  const targets = await drawEach(server, links, variant, images)
  const load = { targets, connections: CONNECTIONS }
  await sendClosed(server, { ...load, seconds: Math.max(1, warmUp) })
  const { figures } = await measureClosed(server, { ...load, seconds })
  await drawEach(server, links, variant, images)
  await server.stop()
  return { figures }
}

/**
 * Requests the image of every link and decodes it, or compares it with the decoded one. Throws if
 * an image has another destination.
 */
async function drawEach(
  server: Server,
  links: readonly Link[],
  { size, caption }: Variant,
  images: Map<string, Buffer>,
): Promise<Target[]> {
  const targets: Target[] = []
  for (const { code } of links) {
    const path = `/api/qr/${code}?size=${size}${caption ? `&caption=${caption}` : ''}`
    const answer = await fetch(server.origin + path)
    const image = Buffer.from(await answer.arrayBuffer())
    const type = answer.headers.get('content-type')
    if (answer.status !== 200 || type !== 'image/png') {
      throw new Error(`${path} answered ${answer.status}, ${type}: ${image.subarray(0, 200)}`)
    }
    const known = images.get(path)
    if (known && !known.equals(image)) throw new Error(`${path} is another image than before`)
    if (!known) requireCode(image, { size, caption }, `${BASE_URL}/${code}`)
    images.set(path, image)
    targets.push({ path, status: 200, bodyBytes: image.length })
  }
  return targets
}

function requireCode(
  image: Buffer,
  { size, caption }: Omit<Variant, 'name'>,
  shortUrl: string,
): void {
  const { width, height, data } = PNG.sync.read(image)
  if (width !== size || height > size !== (caption !== undefined))
    throw new Error(`an image is ${width} by ${height} px`)
  const text = jsQR(new Uint8ClampedArray(data), width, height)?.data
  if (text !== shortUrl) throw new Error(`an image leads to ${text}, not to ${shortUrl}`)
}
