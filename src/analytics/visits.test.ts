import { expect, test } from 'bun:test'
import { emptySums, encodeSums } from '../visits/parts.ts'
import type { VisitQuery } from '../visits/store.ts'
import { VisitDetails } from './visits.ts'

const NOTHING = encodeSums(emptySums())

/** Slices of one day each. `asked`: the first day of each slice that was read. */
function details(asked: number[], deadlineMs?: number): VisitDetails {
  return new VisitDetails({
    isOn: true,
    hasCountries: false,
    data: {
      visits: {
        sums: async ({ from, to }: VisitQuery) => {
          asked.push(from)
          return { parts: NOTHING, scans: [], next: from + 1 < to ? from + 1 : undefined }
        },
      },
    },
    series: { bars: async () => ({ counts: [0], others: [] }) as never },
    ...(deadlineMs !== undefined && { deadlineMs }),
  })
}

test('reports of one account are read one after another, beside those of others', async () => {
  const asked: number[] = []
  const all = details(asked)
  const own = [0, 10, 20].map((from) => all.of({ accountId: 1 }, { from, to: from + 3 }, 1))
  await all.of({ accountId: 2 }, { from: 100, to: 103 }, 2)
  // Slices of both accounts alternate.
  expect(asked.slice(0, asked.indexOf(102)).filter((day) => day < 100)).toEqual([0, 1, 2])
  await Promise.all(own)
  expect(asked.filter((day) => day < 100)).toEqual([0, 1, 2, 10, 11, 12, 20, 21, 22])
})

test('a report that takes too long is refused before the server closes its connection', async () => {
  const asked: number[] = []
  const late = details(asked, -1).of({ accountId: 1 }, { from: 0, to: 3 }, 1)
  expect(late).rejects.toMatchObject({ code: 'visits_timeout', status: 503 })
  await late.catch(() => {})
  expect(asked).toEqual([])
})
