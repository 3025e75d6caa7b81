import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { axisSteps, type Bar, barChart } from './chart.ts'

const draw = (bars: readonly Bar[]): string =>
  barChart({
    title: 'Hits',
    description: 'A bar a day.',
    bars,
    ticks: [{ at: 0.5, text: '<i>', screen: 'wide' }],
  }).toString()

const bars = (...values: number[]): Bar[] => values.map((value, i) => ({ label: `${i}.`, value }))

const heights = (svg: string): number[] =>
  [...svg.matchAll(/class="bar(?: open)?"[^>]* height="([\d.]+)%"/g)].map(([, n]) => Number(n))

test('an axis begins at 0, goes up in equal round steps, about four, and ends near the highest value', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 48 }), (most) => {
      const steps = axisSteps(most)
      const [first, step = 0] = steps
      expect(first).toBe(0)
      expect(steps.length).toBeWithin(1, 6)
      expect(steps.at(-1)).toBeLessThanOrEqual(most)
      expect((steps.at(-1) ?? 0) + (steps[1] ?? 1)).toBeGreaterThan(most)
      expect(String(step)).toMatch(/^[125]0*$/)
      expect(steps).toEqual(steps.map((_, i) => i * step))
    }),
  )
  expect(axisSteps(1)).toEqual([0, 1])
  expect(axisSteps(3)).toEqual([0, 1, 2, 3])
  expect(axisSteps(130)).toEqual([0, 50, 100])
  expect(axisSteps(811)).toEqual([0, 500])
})

test('bars are as high as their values, none for 0, and one hit beside thousands is still visible', () => {
  const [half = 0, whole = 0] = heights(draw(bars(50, 100)))
  expect(half * 2).toBeCloseTo(whole, 1)
  expect(heights(draw(bars(0, 100)))).toHaveLength(1)
  expect(heights(draw(bars(1, 1_000_000)))[0]).toBe(1)
  expect(heights(draw(bars(0, 0)))).toEqual([])
})

test('the tooltip of every bar has its label and its value, and says whether its period is over', () => {
  const all = bars(1, 1234)
  const svg = draw([...all, { label: 'now', value: 0, isOpen: true }])
  expect(svg).toContain('>0.: 1 hit</title>')
  expect(svg).toContain('>1.: 1,234 hits</title>')
  expect(svg).toContain('>now: 0 hits so far</title>')
})

test('the highest value is on its bar, the newest of several, and on no other', () => {
  const shown = (svg: string) =>
    [...svg.matchAll(/class="value" x="([^"]*)"[^>]*>([^<]+)</g)].map(([, x, text]) => [x, text])
  expect(shown(draw(bars(3, 0, 12_345, 12_345)))).toEqual([['87.5%', '12.3K']])
  expect(shown(draw(bars(0, 0)))).toEqual([])
})

test('the period before is a line, in the tooltips, and within the axis', () => {
  const all = bars(1, 2).map((bar, i) => ({ ...bar, previous: [40, 0][i] }))
  const svg = draw(all)
  expect(svg).toContain('points="0.5,0 1.5,100"')
  expect(svg).toContain('>0.: 1 hit, 40 hits before</title>')
  expect(svg).toContain('>40</text>')
  expect(draw(bars(1, 2).map((bar) => ({ ...bar, previous: 0 })))).not.toContain('polyline')
  expect(draw(bars(1, 2))).not.toMatch(/polyline|before/)
})

test('the texts of the drawing are hidden from screen readers, its name and description are not', () => {
  const svg = draw(bars(1, 2))
  const [before = '', drawing = ''] = svg.split('<g aria-hidden="true">')
  expect(before).toContain('<desc')
  expect(before).not.toContain('<text')
  expect(drawing).toContain('<text class="wide" x="50%" y="100%"')
})

test('a chart is an image with a name and a description of its own, and no colors or styles', () => {
  const svg = draw(bars(1, 2))
  const ids = [...svg.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  expect(ids).toEqual(['chart-title', 'chart-desc'])
  expect(svg).toContain('role="img" aria-labelledby="chart-title chart-desc"')
  expect(svg).not.toMatch(/style|fill=|stroke=|#[0-9a-f]{3}/)
})

test('text is escaped', () => {
  const svg = barChart({
    title: '<b>',
    description: '"&',
    bars: [{ label: '<i>', value: 1 }],
    ticks: [{ at: 0, text: '<i>', screen: 'wide' }],
  }).toString()
  expect(svg).toContain('&lt;b&gt;')
  expect(svg).toContain('&lt;i&gt;: 1 hit')
  expect(svg).not.toMatch(/<b>|<i>/)
})
