import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { axisSteps, type Bar, barChart } from './chart.ts'

const draw = (bars: readonly Bar[]): string =>
  barChart({ id: 'c', title: 'Hits', description: 'A bar a day.', unit: 'hit', bars }).toString()

/** The chart for wide screens alone. */
const wide = (bars: readonly Bar[]): string => draw(bars).split('</svg>')[0] ?? ''

const bars = (...values: number[]): Bar[] => values.map((value, i) => ({ label: `${i}.`, value }))

const heights = (svg: string): number[] =>
  [...svg.matchAll(/class="bar(?: open)?"[^>]* height="([\d.]+)"/g)].map(([, n]) => Number(n))

test('an axis begins at 0, goes up in equal round steps, four at most, and holds the highest value', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 }), (most) => {
      const steps = axisSteps(most)
      const [first, step = 0] = steps
      expect(first).toBe(0)
      expect(steps.length).toBeWithin(2, 6)
      expect(steps.at(-1)).toBeGreaterThanOrEqual(most)
      expect(String(step)).toMatch(/^[125]0*$/)
      expect(steps).toEqual(steps.map((_, i) => i * step))
    }),
  )
  expect(axisSteps(0)).toEqual([0, 1])
  expect(axisSteps(3)).toEqual([0, 1, 2, 3])
  expect(axisSteps(130)).toEqual([0, 50, 100, 150])
})

test('bars are as high as their values, none for 0, and one hit beside thousands is still seen', () => {
  const [half = 0, whole = 0] = heights(wide(bars(50, 100)))
  expect(half * 2).toBeCloseTo(whole, 0)
  expect(heights(wide(bars(0, 100)))).toHaveLength(1)
  expect(heights(wide(bars(1, 1_000_000)))[0]).toBe(2)
  expect(heights(wide(bars(0, 0)))).toEqual([])
})

test('every bar says its label and its value where the pointer rests, and one not over says so', () => {
  const all = bars(1, 1234)
  const svg = wide([...all, { label: 'now', value: 0, isOpen: true }])
  expect(svg).toContain('>0.: 1 hit</title>')
  expect(svg).toContain('>1.: 1,234 hits</title>')
  expect(svg).toContain('>now: 0 hits so far</title>')
})

test('values stand on all bars where they have room side by side, else on the highest alone', () => {
  const shown = (svg: string) => [...svg.matchAll(/class="value"[^>]*>([^<]+)</g)].map(([, t]) => t)
  expect(shown(wide(bars(3, 0, 12_345)))).toEqual(['3', '12.3K'])
  const many = Array.from({ length: 90 }, (_, i) => 100 + i)
  expect(shown(wide(bars(...many)))).toEqual(['189'])
  expect(shown(wide(bars(0, 0)))).toEqual([])
})

test.each([1, 2, 24, 72, 90])(
  'labels below %d bars lie inside the drawing and clear of each other, the newest among them',
  (count) => {
    for (const form of ['hour', 'moment'] as const) {
      const all = Array.from({ length: count }, (_, i) => ({
        ...{ label: `label ${i}`, value: i, at: { time: i, form } },
      }))
      for (const svg of draw(all).split('</svg>').slice(0, 2)) {
        const width = Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1])
        const labels = [...svg.matchAll(/<text x="([\d.]+)"[^>]*data-form="\w+">([^<]+)</g)]
        const places = labels.map(([, x]) => Number(x)).sort((a, b) => a - b)
        const length = (form === 'hour' ? 8 : 17) * 7
        expect(labels[0]?.[2]).toBe(`label ${count - 1}`)
        expect((places[0] ?? 0) - length / 2).toBeGreaterThanOrEqual(0)
        expect((places.at(-1) ?? 0) + length / 2).toBeLessThanOrEqual(width + 0.1)
        for (const [i, place] of places.slice(1).entries()) {
          expect(place - (places[i] ?? 0)).toBeGreaterThan(length)
        }
      }
    }
  },
)

test('a chart is an image with a name and a description of its own, and no colors or styles', () => {
  const svg = draw(bars(1, 2))
  const ids = [...svg.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  expect(new Set(ids).size).toBe(4)
  for (const [, names = ''] of svg.matchAll(/role="img" aria-labelledby="([^"]+)"/g)) {
    expect(names.split(' ').every((id) => ids.includes(id))).toBe(true)
  }
  expect(svg).not.toMatch(/style|fill=|stroke=|#[0-9a-f]{3}/)
})

test('text is escaped', () => {
  const svg = barChart({
    ...{ id: 'c', title: '<b>', description: '"&', unit: 'hit' },
    bars: [{ label: '<i>', value: 1 }],
  }).toString()
  expect(svg).toContain('&lt;b&gt;')
  expect(svg).toContain('&lt;i&gt;: 1 hit')
  expect(svg).not.toMatch(/<b>|<i>/)
})
