import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { axisSteps, type Bar, barChart, DIGIT_WIDTH, MARGIN, WIDTHS } from './chart.ts'

const draw = (bars: readonly Bar[]): string =>
  barChart({ id: 'c', title: 'Hits', description: 'A bar a day.', unit: 'hit', bars }).toString()

const bars = (...values: number[]): Bar[] => values.map((value, i) => ({ label: `${i}.`, value }))

const heights = (svg: string): number[] =>
  [...svg.matchAll(/class="bar(?: open)?"[^>]* height="([\d.]+)%"/g)].map(([, n]) => Number(n))

test('an axis begins at 0, goes up in equal round steps, about four, and includes the highest value', () => {
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

test('values are on all bars where they have room side by side, else on the highest alone', () => {
  const shown = (svg: string) =>
    [...svg.matchAll(/class="(value[^"]*)"[^>]*>([^<]+)</g)].map(([, name, text]) => [name, text])
  expect(shown(draw(bars(3, 0, 12_345)))).toEqual([
    ['value', '3'],
    ['value', '12.3K'],
  ])
  const many = Array.from({ length: 90 }, (_, i) => 100 + i)
  expect(shown(draw(bars(...many)))).toEqual([['value', '189']])
  const wide = shown(draw(bars(...Array.from({ length: 20 }, (_, i) => 10 + i))))
  expect(wide.map(([name]) => name)).toEqual([...Array<string>(19).fill('value wide'), 'value'])
  expect(shown(draw(bars(0, 0)))).toEqual([])
})

interface Label {
  text: string | undefined
  left: number
  right: number
}

/** The labels below the axis that a screen shows, in pixels from the left end of the axis. */
function labelsOf(svg: string, screen: keyof typeof WIDTHS, length: number): Label[] {
  const found = [...svg.matchAll(/<text ([^>]*y="100%"[^>]*data-form[^>]*)>([^<]+)</g)]
  return found
    .filter(([, all = '']) => screen === 'wide' || !all.includes('class="wide"'))
    .map(([, all = '', text]) => {
      const x = (Number(/ ?x="([\d.]+)%"/.exec(all)?.[1]) / 100) * WIDTHS[screen]
      const right = all.includes('"end"') ? x + MARGIN.right : x + length / 2
      return { text, left: right - length, right }
    })
}

test.each([1, 2, 24, 72, 90])(
  'labels below %d bars are inside the drawing and do not touch, the newest among them',
  (count) => {
    for (const form of ['hour', 'moment'] as const) {
      const all = Array.from({ length: count }, (_, i) => ({
        label: `label ${i}`,
        value: i,
        at: { time: i, form },
      }))
      for (const screen of ['wide', 'narrow'] as const) {
        const labels = labelsOf(draw(all), screen, (form === 'hour' ? 8 : 17) * DIGIT_WIDTH)
        expect(labels.at(-1)?.text).toBe(`label ${count - 1}`)
        expect(labels[0]?.left).toBeGreaterThanOrEqual(-MARGIN.left)
        expect(labels.at(-1)?.right).toBeLessThanOrEqual(WIDTHS[screen] + MARGIN.right + 0.1)
        for (const [i, { left }] of labels.slice(1).entries()) {
          expect(left).toBeGreaterThan(labels[i]?.right ?? 0)
        }
      }
    }
  },
)

test('a chart is an image with a name and a description of its own, and no colors or styles', () => {
  const svg = draw(bars(1, 2))
  const ids = [...svg.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  expect(ids).toEqual(['c-title', 'c-desc'])
  expect(svg).toContain('role="img" aria-labelledby="c-title c-desc"')
  expect(svg).not.toMatch(/style|fill=|stroke=|#[0-9a-f]{3}/)
})

test('text is escaped', () => {
  const svg = barChart({
    id: 'c',
    title: '<b>',
    description: '"&',
    unit: 'hit',
    bars: [{ label: '<i>', value: 1 }],
  }).toString()
  expect(svg).toContain('&lt;b&gt;')
  expect(svg).toContain('&lt;i&gt;: 1 hit')
  expect(svg).not.toMatch(/<b>|<i>/)
})
