/** What a program that was written for one API description meets in a later one. */

export interface Schema {
  $ref?: string
  type?: string
  nullable?: boolean
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  oneOf?: Schema[]
  anyOf?: Schema[]
  allOf?: Schema[]
}

interface Content {
  content?: Record<string, { schema?: Schema }>
}

export interface Operation {
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema }[]
  requestBody?: Content & { required?: boolean }
  responses: Record<string, Content & { headers?: Record<string, unknown> }>
}

export interface ApiDescription {
  paths: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, Schema> }
}

/** `input`: what a client sends, `output`: what it gets. */
type Direction = 'input' | 'output'

const LISTS = ['oneOf', 'anyOf', 'allOf'] as const

class Comparison {
  readonly found: string[] = []
  readonly #before: ApiDescription
  readonly #now: ApiDescription
  readonly #seen = new Set<string>()

  constructor(before: ApiDescription, now: ApiDescription) {
    this.#before = before
    this.#now = now
  }

  operations(): void {
    for (const [path, methods] of Object.entries(this.#before.paths)) {
      for (const [method, before] of Object.entries(methods)) {
        const where = `${method.toUpperCase()} ${path}`
        const now = this.#now.paths[path]?.[method]
        if (!now) this.found.push(`${where} is gone`)
        else this.#operation(before, now, where)
      }
    }
  }

  #operation(before: Operation, now: Operation, where: string): void {
    const key = (one: { name: string; in: string }) => `${one.in} ${one.name}`
    const parameters = new Map(now.parameters?.map((one) => [key(one), one]))
    for (const one of before.parameters ?? []) {
      const same = parameters.get(key(one))
      parameters.delete(key(one))
      if (!same) this.found.push(`${where}: ${key(one)} is gone`)
      else this.#schema(one.schema, same.schema, `${where} ${key(one)}`, 'input')
      if (same?.required && !one.required) this.found.push(`${where}: ${key(one)} is required`)
    }
    for (const one of parameters.values()) {
      if (one.required) this.found.push(`${where}: ${key(one)} is new and required`)
    }
    if (now.requestBody?.required && !before.requestBody?.required) {
      this.found.push(`${where}: a body is required`)
    }
    this.#content(before.requestBody, now.requestBody, `${where} body`, 'input')
    for (const [status, response] of Object.entries(before.responses)) {
      const same = now.responses[status]
      if (!same) this.found.push(`${where}: ${status} is gone`)
      else this.#content(response, same, `${where} ${status}`, 'output')
      for (const name of Object.keys(response.headers ?? {})) {
        if (same && !same.headers?.[name]) this.found.push(`${where} ${status}: ${name} is gone`)
      }
    }
    // An error that is new leaves each request that succeeds as it was.
    const added = Object.keys(now.responses).filter((status) => !before.responses[status])
    for (const status of added.filter((one) => /^[123]/.test(one))) {
      this.found.push(`${where}: ${status} is new`)
    }
  }

  #content(before: Content | undefined, now: Content | undefined, where: string, at: Direction) {
    for (const [type, { schema }] of Object.entries(before?.content ?? {})) {
      const same = now?.content?.[type]
      if (same) this.#schema(schema, same.schema, `${where} ${type}`, at)
      else this.found.push(`${where}: ${type} is gone`)
    }
  }

  #schema(
    given: Schema | undefined,
    later: Schema | undefined,
    where: string,
    at: Direction,
  ): void {
    const pair = `${given?.$ref} ${later?.$ref} ${at}`
    if (given?.$ref && this.#seen.has(pair)) return
    this.#seen.add(pair)
    const before = resolve(this.#before, given)
    const now = resolve(this.#now, later)
    if (!before || !now) return
    if (before.type !== now.type) this.found.push(`${where}: ${before.type} is now ${now.type}`)
    const mayBeNull =
      at === 'input' ? before.nullable && !now.nullable : now.nullable && !before.nullable
    if (mayBeNull) this.found.push(`${where}: nullable is now ${now.nullable === true}`)
    if (at === 'input') {
      const values = before.enum?.filter((value) => now.enum && !now.enum.includes(value)) ?? []
      if (values.length > 0) this.found.push(`${where}: ${values} is gone`)
    }
    this.#required(before, now, where, at)
    for (const [name, schema] of Object.entries(before.properties ?? {})) {
      const same = now.properties?.[name]
      if (same) this.#schema(schema, same, `${where}.${name}`, at)
      else this.found.push(`${where}.${name} is gone`)
    }
    this.#schema(before.items, now.items, `${where}[]`, at)
    if (
      typeof before.additionalProperties === 'object' &&
      typeof now.additionalProperties === 'object'
    ) {
      this.#schema(before.additionalProperties, now.additionalProperties, `${where}.*`, at)
    }
    for (const list of LISTS) {
      for (const [i, schema] of (before[list] ?? []).entries()) {
        const same = now[list]?.[i]
        if (same) this.#schema(schema, same, `${where} (${i + 1})`, at)
        else this.found.push(`${where} (${i + 1}) is gone`)
      }
    }
  }

  #required(before: Schema, now: Schema, where: string, at: Direction): void {
    const [less, more] = at === 'input' ? [before, now] : [now, before]
    const names = more.required?.filter((name) => !less.required?.includes(name)) ?? []
    const says = at === 'input' ? 'is now required' : 'is no longer always there'
    for (const name of names) this.found.push(`${where}.${name} ${says}`)
  }
}

const resolve = (api: ApiDescription, schema: Schema | undefined): Schema | undefined =>
  schema?.$ref ? api.components?.schemas?.[schema.$ref.split('/').at(-1) ?? ''] : schema

/** What breaks programs: each place with what is different. */
export function breakingChanges(before: ApiDescription, now: ApiDescription): string[] {
  const comparison = new Comparison(before, now)
  comparison.operations()
  return comparison.found
}
