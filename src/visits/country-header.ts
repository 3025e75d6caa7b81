import type { Client } from '../hot/client-address.ts'
import type { Countries } from './country.ts'

export interface CountrySettings {
  /** Undefined without a file of countries. */
  countries: Pick<Countries, 'findByClient'> | undefined
  countryHeader: string | undefined
}

const COUNTRY = /^[A-Z]{2}$/

/**
 * Whether the header has the country of the client. Anybody can send it; only a trusted proxy
 * replaces it.
 */
export const isCountrySent = (countryHeader: string | undefined, client: Client): boolean =>
  countryHeader !== undefined && client.isForwarded

/** Returns the country of a request (ISO 3166-1 alpha-2); undefined if it is not known. */
export function countryFinder({ countries, countryHeader }: CountrySettings) {
  const name = countryHeader?.toLowerCase() ?? ''
  return (
    client: Client,
    headers: { get(name: string): string | null | undefined },
  ): string | undefined => {
    if (!isCountrySent(countryHeader, client)) return countries?.findByClient(client)
    const country = headers.get(name)?.toUpperCase() ?? ''
    // Cloudflare sends XX for an unknown country, and T1 for Tor.
    return COUNTRY.test(country) && country !== 'XX' ? country : undefined
  }
}
