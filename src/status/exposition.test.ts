import { expect, test } from 'bun:test'
import parsePrometheus from 'parse-prometheus-text-format'
import { Histogram } from '../lib/histogram.ts'
import { expose, familiesOf } from './exposition.ts'

const { counter, gauge, histogram } = familiesOf<null>()

test('a family is its help, its type and a line per sample, in the order of the list', () => {
  const families = {
    a_ratio: gauge('How full.', () => 0.25),
    b_total: counter('Answers.', () => [
      { labels: { route: '/x', status: 200 }, value: 3 },
      { labels: { route: '/y', status: 404 }, value: 1 },
    ]),
    c_bytes: gauge('Not known now.', () => undefined),
    d: gauge('Whether.', () => true),
  }
  expect(expose(families, null)).toBe(
    [
      '# HELP a_ratio How full.',
      '# TYPE a_ratio gauge',
      'a_ratio 0.25',
      '# HELP b_total Answers.',
      '# TYPE b_total counter',
      'b_total{route="/x",status="200"} 3',
      'b_total{route="/y",status="404"} 1',
      '# HELP d Whether.',
      '# TYPE d gauge',
      'd 1',
      '',
    ].join('\n'),
  )
})

test('the buckets of a histogram add up, and the last one is its count', () => {
  const times = new Histogram([0.5, 1])
  for (const value of [0.25, 0.5, 0.75, 8]) times.observe(value)
  const text = expose({ t_seconds: histogram('Times.', () => times) }, null)
  expect(text.split('\n').slice(2, -1)).toEqual([
    't_seconds_bucket{le="0.5"} 2',
    't_seconds_bucket{le="1"} 3',
    't_seconds_bucket{le="+Inf"} 4',
    't_seconds_sum 9.5',
    't_seconds_count 4',
  ])
})

test('what a label or a help holds cannot end its line', () => {
  const hostile = 'a\\b"c\nd 1'
  const text = expose({ a: gauge(hostile, () => [{ labels: { path: hostile }, value: 1 }]) }, null)
  expect(text.split('\n')).toHaveLength(4)
  expect(text).toContain('a{path="a\\\\b\\"c\\nd 1"} 1')
  expect(parsePrometheus(text)).toHaveLength(1)
})

test('numbers that are none are spelled as the format asks', () => {
  const text = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 1e21, 1e-7]
    .map((value) =>
      expose({ a: gauge('A.', () => value) }, null)
        .split(' ')
        .at(-1)
        ?.trim(),
    )
    .join(' ')
  expect(text).toBe('+Inf -Inf NaN 1e+21 1e-7')
})
