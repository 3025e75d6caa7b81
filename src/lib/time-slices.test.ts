import { expect, test } from 'bun:test'
import { TimeSlices } from './time-slices.ts'

/** On a clock that stands still. */
const mapInSlices: TimeSlices['map'] = (items, most, map) =>
  new TimeSlices(() => 0).map(items, most, map)

test('every item is mapped, in order, with its index', async () => {
  for (const most of [1, 2, 3, 4]) {
    expect(await mapInSlices(['a', 'b', 'c'], most, (item, at) => item + at)).toEqual([
      'a0',
      'b1',
      'c2',
    ])
  }
  expect(await mapInSlices([], 2, () => 1)).toEqual([])
})

test('other work of the thread runs in between', async () => {
  const seen: number[] = []
  setImmediate(() => seen.push(-1))
  await mapInSlices([0, 1, 2, 3], 2, (item) => seen.push(item))
  expect(seen).toEqual([0, 1, -1, 2, 3])
})

test('other work of the thread runs between items that take long', async () => {
  const seen: number[] = []
  let now = 0
  setImmediate(() => seen.push(-1))
  await new TimeSlices(() => now).map([0, 1, 2], 100, (item) => {
    now += 1.5
    seen.push(item)
  })
  expect(seen).toEqual([0, 1, -1, 2])
})

test('what the function throws ends the work', async () => {
  const seen: number[] = []
  const mapped = mapInSlices([0, 1, 2, 3], 2, (item) => {
    if (item === 2) throw new Error('no')
    seen.push(item)
  })
  await expect(mapped).rejects.toThrow('no')
  expect(seen).toEqual([0, 1])
})

test('of many callers one goes on in a round of the event loop', async () => {
  const rounds: number[] = []
  let round = 0
  let isDone = false
  const count = () => {
    round++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const turns = new TimeSlices(() => 0)
  const work = Array.from({ length: 4 }, () =>
    turns.map([0, 1, 2], 1, (item) => item > 0 && rounds.push(round)),
  )
  await Promise.all(work)
  isDone = true
  expect(rounds).toHaveLength(8)
  expect(new Set(rounds).size).toBe(8)
})

test('work of one kind does not wait for the slices of another', async () => {
  const [busy, quiet] = [new TimeSlices(), new TimeSlices()]
  const waiting = Array.from({ length: 50 }, () => busy.next())
  let areWaitingDone = false
  const end = Promise.all(waiting).then(() => {
    areWaitingDone = true
  })
  await quiet.next()
  expect(areWaitingDone).toBe(false)
  await end
})
