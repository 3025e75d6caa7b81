import { Histogram } from '../lib/histogram.ts'

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

type Value = number | boolean | Histogram

/** One series of a family. Every sample of a family has the same label names. */
export interface Sample {
  labels: Readonly<Record<string, string | number>>
  value: Value
}

/** A value without labels, or the samples of all labels; undefined leaves the family out. */
type Reading = Value | readonly Sample[] | undefined

interface Family<Source> {
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  read: (source: Source) => Reading
}

/** Builders of metric families that read one kind of source: `gauge('Help.', read)`. */
export function familiesOf<Source>() {
  const family =
    (type: Family<Source>['type']) =>
    (help: string, read: (source: Source) => Reading): Family<Source> => ({ help, type, read })
  return {
    /** A number that only grows until the process ends. Its name ends in `_total`. */
    counter: family('counter'),
    /** A number that goes up and down. `true` is 1. */
    gauge: family('gauge'),
    histogram: family('histogram'),
  }
}

/** One sample per entry, with the key as the value of `label`. */
export const samples = (label: string, values: Readonly<Record<string, Value>>): Sample[] =>
  Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }))

/**
 * Writes metric families, by name, in Prometheus's text format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/.
 */
export function expose<Source>(
  families: Readonly<Record<string, Family<Source>>>,
  source: Source,
): string {
  let text = ''
  for (const [name, { help, type, read }] of Object.entries(families)) {
    const reading = read(source)
    if (reading === undefined) continue
    const all = Array.isArray(reading) ? (reading as Sample[]) : [{ labels: {}, value: reading }]
    text += `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`
    for (const sample of all) text += linesOf(name, sample as Sample)
  }
  return text
}

function linesOf(name: string, { labels, value }: Sample): string {
  if (!(value instanceof Histogram)) return line(name, labels, Number(value))
  let text = ''
  let count = 0
  for (const [index, inBucket] of value.buckets.entries()) {
    count += inBucket
    const le = numeral(value.bounds[index] ?? Number.POSITIVE_INFINITY)
    text += line(`${name}_bucket`, { ...labels, le }, count)
  }
  return text + line(`${name}_sum`, labels, value.sum) + line(`${name}_count`, labels, count)
}

function line(name: string, labels: Sample['labels'], value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  const set = pairs.length > 0 ? `{${pairs.join(',')}}` : ''
  return `${name}${set} ${numeral(value)}\n`
}

const escapeHelp = (text: string) => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')

const escapeLabel = (text: string | number) => escapeHelp(String(text)).replace(/"/g, '\\"')

function numeral(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}
