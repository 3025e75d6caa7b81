import { expect, test } from 'bun:test'
import { binary } from '../support/binary.ts'
import { type Figure, isWithin } from './attacked.ts'
import { ATTACKS } from './attacks.ts'

/** The short form of `npm run test:abuse`: what is refused and how much is stored, no times. */

const describe = ({ name, value }: Figure) => `${name}: ${value}`

test.each(ATTACKS.map((attack) => [attack.name, attack] as const))(
  'the service withstands an attack with %s',
  async (_, attack) => {
    const figures = await attack.run(await binary(), { isShort: true })
    const asserted = figures.filter(({ isTiming }) => !isTiming)
    expect(asserted.length).toBeGreaterThan(0)
    const broken = asserted.filter((figure) => !isWithin(figure))
    expect(broken.map(describe)).toEqual([])
  },
)
