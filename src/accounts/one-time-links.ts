import { HOUR } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import type {
  NewOneTimeLink,
  OneTimeLinkRow,
  OneTimeLinkStore,
  Purpose,
} from './one-time-link-store.ts'
import type { SecretHasher } from './secrets.ts'
import { newToken } from './sessions.ts'

const TOKEN_SHAPE = /^[\w-]{43}$/

/** How long a link may wait to be used. */
const LINK_LIFE_MS: Readonly<Record<Purpose, number>> = {
  setup: 24 * HOUR,
  invite: 7 * 24 * HOUR,
  reset: 24 * HOUR,
}

const PAGES: Readonly<Record<Purpose, string>> = { setup: 'setup', invite: 'join', reset: 'reset' }

interface LinkDeps {
  hasher: SecretHasher
  random: RandomBytes
}

/** A link and what is stored of it. The path is a secret: it is shown once and kept nowhere. */
export function issueOneTimeLink(
  { hasher, random }: LinkDeps,
  about: Pick<NewOneTimeLink, 'purpose' | 'accountId' | 'email' | 'plan'>,
  now: number,
): { path: string; stored: NewOneTimeLink } {
  const token = newToken(random)
  const { purpose } = about
  return {
    path: `/app/${PAGES[purpose]}/${token}`,
    stored: {
      ...about,
      hash: hasher.hash('one-time-link', token),
      createdAt: now,
      endsAt: now + LINK_LIFE_MS[purpose],
    },
  }
}

/** The link that a token stands for, if it can still be used. Looking does not use it up. */
export function findOneTimeLink(
  { hasher, links }: { hasher: SecretHasher; links: OneTimeLinkStore },
  purpose: Purpose,
  token: string,
  now: number,
): OneTimeLinkRow | undefined {
  if (!TOKEN_SHAPE.test(token)) return undefined
  return links.find(purpose, hasher.hash('one-time-link', token), now)
}
