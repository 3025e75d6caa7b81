/**
 * Headers of every answer but plain redirects, which set the first one themselves.
 *
 * `Strict-Transport-Security` is a year's promise to use https for this host, so only a service
 * whose `BASE_URL` is https makes it: for pages, which take passwords, and the API, which takes
 * keys. Subdomains are not ours to promise for.
 */
export const securityHeaders = (baseUrl: string): Record<string, string> => ({
  'x-content-type-options': 'nosniff',
  ...(baseUrl.startsWith('https:') && { 'strict-transport-security': 'max-age=31536000' }),
})
