// What does finding the client address cost per request, compared with parsing by ipaddr.js?
// bun bench/micro/client-address.bench.ts

import ipaddr from 'ipaddr.js'
import { ClientAddress } from '../../src/hot/client-address.ts'
import { printMachine, timeInTurn } from '../lib/micro.ts'
import { median } from '../lib/rounds.ts'

const ROUNDS = 5
const CALLS = { hopcode: 1_000_000, ipaddr: 50_000 }
type Variant = keyof typeof CALLS
const VARIANTS: readonly Variant[] = ['hopcode', 'ipaddr']
const PROXIES = ['10.0.0.0/8', 'fd00::/8', '2001:db8:f::/48', '192.0.2.7']

const CASES = [
  { name: 'IPv4', peer: '203.0.113.77', header: null, client: '203.0.113.77' },
  { name: 'IPv4-mapped', peer: '::ffff:203.0.113.77', header: null, client: '203.0.113.77' },
  { name: 'IPv6', peer: '2001:db8:1:2:3:4:5:6', header: null, client: '2001:db8:1:2::' },
  {
    name: 'IPv4 behind two proxies',
    peer: '::ffff:10.0.0.1',
    header: '203.0.113.77, 10.1.2.3',
    client: '203.0.113.77',
  },
]

const [variant, index] = process.argv.slice(2)
if (variant === 'hopcode' || variant === 'ipaddr') {
  console.log(measure(variant, Number(index)))
} else {
  await compare()
}

async function compare(): Promise<void> {
  printMachine()
  console.log('| peer | hopcode, ns | ipaddr.js, ns | ratio |\n| --- | ---: | ---: | ---: |')
  for (const [index, { name }] of CASES.entries()) {
    const file = import.meta.path
    const times = await timeInTurn<Variant, number>(file, VARIANTS, ROUNDS, () => [index])
    const [ours, theirs] = [median(times.hopcode), median(times.ipaddr)]
    const cells = [ours.toFixed(0), theirs.toFixed(0), (ours / theirs).toFixed(3)]
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
}

/** Nanoseconds per call, after a warm-up of as many calls. */
function measure(variant: Variant, index: number): number {
  const { peer, header, client } = CASES[index] as (typeof CASES)[number]
  const address = new ClientAddress(PROXIES)
  const find = {
    hopcode: () => address.resolve(peer, header).keyLow,
    ipaddr: () => {
      const chain = [peer, ...(header?.split(',').toReversed() ?? [])]
      const bytes = chain.map((text) => ipaddr.process(text.trim()).toByteArray()).at(-1) ?? []
      return Buffer.from(bytes).readUInt32BE(bytes.length === 4 ? 0 : 4)
    },
  }[variant]
  const bytes = Buffer.from(ipaddr.process(client).toByteArray())
  const expected = bytes.readUInt32BE(bytes.length === 4 ? 0 : 4)
  if (find() !== expected) throw new Error(`${variant} finds another client than ${client}`)
  const calls = CALLS[variant]
  for (let i = 0; i < calls; i++) find()
  const start = performance.now()
  let sum = 0
  for (let i = 0; i < calls; i++) sum += find()
  const nanoseconds = ((performance.now() - start) * 1e6) / calls
  if (sum !== expected * calls) throw new Error('the same request, two callers')
  return nanoseconds
}
