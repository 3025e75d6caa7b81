import { lookup as lookUp } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Ranges of ipaddr.js. Link-local ones are left out: clouds answer there. */
const OWN_RANGES = ['loopback', 'private', 'uniqueLocal']

type Lookup = (host: string) => Promise<string[]>

const allAddresses: Lookup = async (host) =>
  (await lookUp(host, { all: true })).map(({ address }) => address)

const isOwn = (address: string): boolean =>
  OWN_RANGES.includes(ipaddr.process(address).range() as string)

/**
 * Every address of the host of a URL, and whether one is public. Throws unless all are loopback or
 * private ones, or `hasToken` and the URL is https. Connections go to one of these addresses: a
 * second look-up could give another one.
 */
export async function ownAddresses(
  { hostname, protocol }: URL,
  hasToken: boolean,
  lookup = allAddresses,
): Promise<{ addresses: string[]; isPublic: boolean }> {
  const host = hostname.replace(/^\[|\]$/g, '')
  const addresses = isIP(host) ? [host] : await lookup(host)
  const foreign = addresses.find((address) => !isOwn(address))
  if (foreign === undefined) return { addresses, isPublic: false }
  if (!hasToken) {
    throw new Error(
      `${host} has the public address ${foreign}. Of those, the bench loads only a Hopcode whose ` +
        'host has printed a token: run "hopcode bench-token" there, and add --token.',
    )
  }
  // The API key and the token would be readable on the way.
  if (protocol !== 'https:') throw new Error(`${host} is public: its URL must begin with https.`)
  return { addresses, isPublic: true }
}
