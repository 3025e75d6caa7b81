/**
 * Runs every attack against the compiled program and prints each figure beside its bound:
 * npm run test:abuse -- [--against COMMIT] [attack ...]. With --against, the same attacks run
 * against that commit too. The bounds of time and memory are meant for a quiet machine.
 */
import { parseArgs } from 'node:util'
import { builtCommit, commitOf } from '../../bench/lib/built-commit.ts'
import { binary } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type Figure, isWithin } from './attacked.ts'
import { ATTACKS } from './attacks.ts'

const number = (value: number) =>
  value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3)

const shown = ({ value, unit }: Figure) => `${number(value)}${unit && ` ${unit}`}`

function print(figures: readonly Figure[], others: readonly Figure[] | undefined): void {
  for (const figure of figures) {
    const verdict = isWithin(figure) ? 'ok  ' : 'OVER'
    const bound = figure.name.startsWith('status') ? `= ${figure.max}` : `<= ${number(figure.max)}`
    const other = others?.find(({ name }) => name === figure.name)
    const beside = other ? `   (there: ${shown(other)})` : ''
    console.log(`  ${verdict}  ${figure.name}: ${shown(figure)}  [${bound}]${beside}`)
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { against: { type: 'string' } },
  })
  const names = ATTACKS.map(({ name }) => name)
  if (!positionals.every((name) => names.includes(name))) {
    console.error(`Attacks: ${names.join(', ')}.`)
    process.exit(2)
  }
  using folder = temporaryFolder()
  const program = await binary()
  const other =
    values.against && (await builtCommit(commitOf(values.against), `${folder.path}/other`))
  const over: string[] = []
  for (const attack of ATTACKS) {
    if (positionals.length > 0 && !positionals.includes(attack.name)) continue
    console.log(`\n${attack.name}: ${attack.about}`)
    const others = other
      ? await attack.run(other, { isShort: false }).catch((error: Error) => {
          console.log(`  the attack failed against ${values.against}: ${error.message}`)
          return undefined
        })
      : undefined
    const figures = await attack.run(program, { isShort: false })
    print(figures, others)
    over.push(...figures.filter((figure) => !isWithin(figure)).map(({ name }) => name))
  }
  console.log(
    over.length === 0 ? '\nEvery bound holds.' : `\nOver their bound: ${over.join('; ')}.`,
  )
  process.exitCode = over.length === 0 ? 0 : 1
}

if (import.meta.main) await main()
