import { expect, test } from 'bun:test'
import { createLog } from '../lib/log.ts'
import { Descriptors } from './descriptors.ts'

const LIMIT = 1000

function watched(endsAtMost = LIMIT) {
  const lines: string[] = []
  const state = {
    now: 1000,
    lowestFree: 40 as number | undefined,
    paused: 0,
    wanted: [] as number[],
  }
  const descriptors = new Descriptors({
    log: createLog({ level: 'info', human: false, write: (line) => lines.push(line) }),
    monotonic: () => state.now,
    limit: LIMIT,
    lowestFree: () => state.lowestFree,
    closeConnections: ({ wanted }) => {
      state.wanted.push(wanted)
      return Math.min(wanted, endsAtMost)
    },
  })
  descriptors.watchListeners([{ pause: () => state.paused++, resume: () => state.paused-- }])
  const events = () => lines.map((line) => (JSON.parse(line) as { event: string }).event)
  const pass = (ms: number) => {
    state.now += ms
    descriptors.check()
  }
  return { descriptors, state, events, pass }
}

test('while descriptors are free nothing happens', () => {
  const { descriptors, state, events, pass } = watched()
  for (const open of [3, 500, 935]) {
    state.lowestFree = open
    pass(50)
  }
  expect([descriptors.areExhausted, state.paused, state.wanted]).toEqual([false, 0, []])
  expect(events()).toEqual([])
})

test.each([936, 999, undefined])(
  'with %p as the lowest free one, accepting pauses and idle connections are closed',
  (lowestFree) => {
    const { descriptors, state, events, pass } = watched()
    state.lowestFree = lowestFree
    pass(50)
    expect([descriptors.areExhausted, state.paused]).toEqual([true, 1])
    expect(state.wanted).toEqual([(lowestFree ?? LIMIT) - 750])
    expect(descriptors.ended).toBe((lowestFree ?? LIMIT) - 750)
    expect(events()).toEqual(['service.descriptors_exhausted'])
  },
)

test('accepting goes on after a second once there is room, and not before', () => {
  const { state, pass } = watched()
  state.lowestFree = undefined
  pass(50)
  state.lowestFree = 700
  pass(900)
  expect(state.paused).toBe(1)
  pass(100)
  expect(state.paused).toBe(0)
})

test('while there is no room, accepting stays paused and each second ends more connections', () => {
  const { state, pass } = watched(0)
  state.lowestFree = 990
  pass(50)
  for (let i = 0; i < 60; i++) pass(50)
  expect(state.paused).toBe(1)
  expect(state.wanted).toEqual([240, 240, 240, 240])
})

test('a flood that goes on is logged once; a minute after its last pause it is over', () => {
  const { descriptors, state, events, pass } = watched()
  for (let round = 0; round < 30; round++) {
    state.lowestFree = undefined
    pass(50)
    state.lowestFree = 700
    pass(1000)
  }
  pass(59_000)
  expect(descriptors.areExhausted).toBe(true)
  pass(1000)
  expect([descriptors.areExhausted, state.paused]).toEqual([false, 0])
  expect(events()).toEqual(['service.descriptors_exhausted', 'service.descriptors_free'])
})

test('once closed, it resumes no listener', () => {
  const { descriptors, state, pass } = watched()
  state.lowestFree = undefined
  pass(50)
  descriptors.close()
  state.lowestFree = 40
  pass(2000)
  expect(state.paused).toBe(1)
})
