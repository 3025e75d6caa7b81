import { hasRole } from '../../accounts/roles.ts'
import type { Role } from '../../accounts/store.ts'
import type { CurrentUser } from '../auth/guard.ts'
import { mayUse } from '../auth/roles.ts'

/** The pages that the navigation and “Go to” offer. Their names are those that people see. */

interface Destination {
  label: string
  href: string
  /** Shown in the navigation of each page; the path is `/app/` and the label. */
  isSection?: true
  isForOwners?: true
  /** The least role, if it is not that of the page. */
  role?: Role
  /** Other words that a person may type. */
  words?: string
}

type User = Pick<CurrentUser, 'person' | 'role'>

const DESTINATIONS: readonly Destination[] = [
  { label: 'Links', href: '/app/links', isSection: true },
  { label: 'Analytics', href: '/app/analytics', isSection: true, words: 'hits visitors report' },
  { label: 'Keys', href: '/app/keys', isSection: true, words: 'api limits' },
  { label: 'Service', href: '/app/service', isSection: true, isForOwners: true, words: 'health' },
  { label: 'Create a link', href: '/app/links?url=', role: 'editor', words: 'new shorten' },
  { label: 'Create many links', href: '/app/links/bulk', words: 'bulk' },
  { label: 'Import links', href: '/app/links/import', words: 'move bitly yourls csv' },
  { label: 'Export links', href: '/app/links/import', words: 'download csv' },
  { label: 'Print labels', href: '/app/print', words: 'sheet pdf stickers' },
  { label: 'QR codes: logo and presets', href: '/app/qr', words: 'caption colors' },
  { label: 'Account', href: '/app/account', words: 'password time zone sessions email' },
  { label: 'Members', href: '/app/account/members', words: 'invite people team colleagues' },
  { label: 'Two-factor sign-in', href: '/app/account/two-factor', words: 'security 2fa' },
  { label: 'Accounts', href: '/app/service/accounts', isForOwners: true, words: 'invite people' },
  { label: 'Links of all accounts', href: '/app/service/links', isForOwners: true },
  { label: 'Blocked hosts', href: '/app/service/hosts', isForOwners: true, words: 'abuse' },
  { label: 'API documentation', href: '/docs', words: 'openapi swagger' },
]

export const destinationsOf = ({ person, role }: User): readonly Destination[] =>
  DESTINATIONS.filter(
    ({ isForOwners, href, role: least }) =>
      (person.isOwner || !isForOwners) &&
      mayUse(role, 'GET', href) &&
      (least === undefined || hasRole(role, least)),
  )

/** Destinations whose name or other words contain each word of the text. */
export function findDestinations(user: User, text: string) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
  return destinationsOf(user).filter(({ label, words = '' }) => {
    const all = `${label} ${words}`.toLowerCase()
    return wanted.every((word) => all.includes(word))
  })
}
