import type { Histogram } from '../lib/histogram.ts'

export type Labels = Readonly<Record<string, string | number>>

/** One value of a family, by its labels. */
export interface Sample {
  labels: Labels
  value: number
}

interface TimedSeries {
  labels: Labels
  histogram: Histogram
}

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * Writes metric families in Prometheus's text format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/. A name is given once; every sample
 * of a family has the same label names.
 */
export class Exposition {
  #text = ''

  /** A number that only grows until the process ends. `name` ends in `_total`. */
  counter(name: string, help: string, value: number | readonly Sample[]): this {
    return this.#family(name, help, 'counter', value)
  }

  /** A number that goes up and down. */
  gauge(name: string, help: string, value: number | readonly Sample[]): this {
    return this.#family(name, help, 'gauge', value)
  }

  histogram(name: string, help: string, series: Histogram | readonly TimedSeries[]): this {
    this.#head(name, help, 'histogram')
    const all = 'observe' in series ? [{ labels: {}, histogram: series }] : series
    for (const { labels, histogram } of all) {
      let count = 0
      for (const [index, inBucket] of histogram.buckets.entries()) {
        count += inBucket
        const le = index < histogram.bounds.length ? numeral(histogram.bounds[index]) : '+Inf'
        this.#line(`${name}_bucket`, { ...labels, le }, count)
      }
      this.#line(`${name}_sum`, labels, histogram.sum)
      this.#line(`${name}_count`, labels, count)
    }
    return this
  }

  toString(): string {
    return this.#text
  }

  #family(name: string, help: string, type: string, value: number | readonly Sample[]): this {
    this.#head(name, help, type)
    const samples = typeof value === 'number' ? [{ labels: {}, value }] : value
    for (const { labels, value } of samples) this.#line(name, labels, value)
    return this
  }

  #head(name: string, help: string, type: string): void {
    const text = help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
    this.#text += `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n`
  }

  #line(name: string, labels: Labels, value: number): void {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
    const set = pairs.length > 0 ? `{${pairs.join(',')}}` : ''
    this.#text += `${name}${set} ${numeral(value)}\n`
  }
}

/** One sample an entry, told apart by one label. */
export const samples = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }))

function escaped(text: string | number): string {
  return String(text).replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

function numeral(value = Number.NaN): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}
