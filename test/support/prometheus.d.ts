declare module 'parse-prometheus-text-format' {
  interface Metric {
    value?: string
    labels?: Record<string, string>
    buckets?: Record<string, string>
    count?: string
    sum?: string
  }

  interface Family {
    name: string
    help: string
    type: 'COUNTER' | 'GAUGE' | 'HISTOGRAM' | 'SUMMARY' | 'UNTYPED'
    metrics: Metric[]
  }

  function parse(text: string): Family[]
  export = parse
}
