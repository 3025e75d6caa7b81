/** The pages that the navigation and “Go to” offer. Their names are those that people see. */

interface Destination {
  label: string
  href: string
  /** Shown in the navigation of each page; the path is `/app/` and the label. */
  isSection?: true
  isForOwners?: true
  /** Other words that a person may type. */
  words?: string
}

interface Viewer {
  isOwner: boolean
}

const DESTINATIONS: readonly Destination[] = [
  { label: 'Links', href: '/app/links', isSection: true },
  { label: 'Analytics', href: '/app/analytics', isSection: true, words: 'hits visitors report' },
  { label: 'Keys', href: '/app/keys', isSection: true, words: 'api limits' },
  { label: 'Service', href: '/app/service', isSection: true, isForOwners: true, words: 'health' },
  { label: 'Create a link', href: '/app/links?url=', words: 'new shorten' },
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

export function destinationsOf({ isOwner }: Viewer): readonly Destination[] {
  return isOwner ? DESTINATIONS : DESTINATIONS.filter(({ isForOwners }) => !isForOwners)
}

/** Destinations whose name or other words contain each word of the text. */
export function findDestinations(account: Viewer, text: string) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
  return destinationsOf(account).filter(({ label, words = '' }) => {
    const all = `${label} ${words}`.toLowerCase()
    return wanted.every((word) => all.includes(word))
  })
}
