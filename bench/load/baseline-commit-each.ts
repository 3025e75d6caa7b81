import { issueKey } from '../../src/accounts/keys.ts'
import { openDataFolder } from '../../src/data-folder.ts'
import { commitTogether } from '../../src/db/writer.ts'
import { isoTime, wallClock } from '../../src/lib/clock.ts'
import { newCode } from '../../src/lib/code.ts'
import { secureRandom } from '../../src/lib/random.ts'
import {
  type CreatedLink,
  encodeCreate,
  newPasscode,
  type ParsedUrl,
} from '../../src/links/link.ts'
import { linkWrites } from '../../src/links/store.ts'
import { Url, urlKey } from '../../src/links/url.ts'
import { pauseAfterCommit } from '../lib/disk-model.ts'
import { ACCOUNT_EMAIL, BASE_URL } from '../lib/variants.ts'

// The baseline of bench/load/create.ts: what does POST /api/shorten give with a commit per request?
// bun bench/load/baseline-commit-each.ts <port> <data folder>

const [port, dataDir = ''] = process.argv.slice(2)
const { db, accounts, hasher } = openDataFolder(dataDir)
const { stored } = issueKey({ accounts, hasher, clock: wallClock, random: secureRandom })
const account = { email: ACCOUNT_EMAIL, plan: 'enterprise', key: stored, now: wallClock() } as const
const accountId = accounts.create(account) ?? 1
const writes = linkWrites(db)

/** The service's own statements and commit, for a single link. */
function shorten({ text: url, href }: ParsedUrl): CreatedLink & { passcode: string } {
  const passcode = newPasscode(secureRandom)
  const passcodeHash = hasher.hash('passcode', passcode)
  const item = { url, urlKey: urlKey({ href }), code: newCode(secureRandom), passcodeHash }
  const quota = { linksMax: 0, urlBytesMax: 0 }
  const args = encodeCreate({ accountId, createdAt: wallClock(), items: [item], quota })
  const [outcome] = commitTogether(db, writes, [{ name: 'createEncoded', args }])
  pauseAfterCommit()
  if (!outcome || !('value' in outcome)) throw new Error('the commit failed')
  const [link] = JSON.parse(String(outcome.value)) as CreatedLink[]
  if (!link) throw new Error('nothing was created')
  return { ...link, passcode }
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  routes: {
    '/api/shorten': {
      async POST(request) {
        const { url } = (await request.json()) as { url: unknown }
        const link = shorten(Url.parse(url))
        const view = {
          code: link.code,
          url: link.url,
          passcode: link.reused ? null : link.passcode,
          short_url: `${BASE_URL}/${link.code}`,
          qr_url: `${BASE_URL}/qr/${link.code}`,
          created_at: isoTime(link.createdAt),
          reused: link.reused,
        }
        return Response.json(view, { status: link.reused ? 200 : 201 })
      },
    },
  },
  fetch: () => new Response(null, { status: 404 }),
})

process.on('SIGTERM', () => {
  db.close()
  process.exit(0)
})
