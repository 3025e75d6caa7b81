import { expect, test } from 'bun:test'
import parsePrometheus from 'parse-prometheus-text-format'
import { Histogram } from '../lib/histogram.ts'
import { Exposition } from './exposition.ts'

test('a family is its help, its type and a line a sample', () => {
  const text = new Exposition()
    .gauge('a_ratio', 'How full.', 0.25)
    .counter('b_total', 'Answers.', [
      { labels: { route: '/x', status: 200 }, value: 3 },
      { labels: { route: '/y', status: 404 }, value: 1 },
    ])
    .toString()
  expect(text).toBe(
    [
      '# HELP a_ratio How full.',
      '# TYPE a_ratio gauge',
      'a_ratio 0.25',
      '# HELP b_total Answers.',
      '# TYPE b_total counter',
      'b_total{route="/x",status="200"} 3',
      'b_total{route="/y",status="404"} 1',
      '',
    ].join('\n'),
  )
})

test('the buckets of a histogram add up, and the last one is its count', () => {
  const histogram = new Histogram([0.5, 1])
  for (const value of [0.25, 0.5, 0.75, 8]) histogram.observe(value)
  const text = new Exposition().histogram('t_seconds', 'Times.', histogram).toString()
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
  const text = new Exposition()
    .gauge('a', hostile, [{ labels: { path: hostile }, value: 1 }])
    .toString()
  expect(text.split('\n')).toHaveLength(4)
  expect(text).toContain('a{path="a\\\\b\\"c\\nd 1"} 1')
  expect(parsePrometheus(text)).toHaveLength(1)
})

test('numbers that are none are spelled as the format asks', () => {
  const text = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 1e21, 1e-7]
    .map((value) => new Exposition().gauge('a', 'A.', value).toString().split(' ').at(-1)?.trim())
    .join(' ')
  expect(text).toBe('+Inf -Inf NaN 1e+21 1e-7')
})
