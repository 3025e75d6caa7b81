import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { Answer, TestApp } from './app.ts'

type Json = Record<string, unknown>

export interface Operation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema: Json }> }
  responses: Record<string, ResponseObject>
}

interface Parameter {
  name: string
  in: string
  required: boolean
  schema: Json
}

interface ResponseObject {
  description: string
  headers?: Record<string, { schema: Json }>
  content?: Record<string, { schema: Json }>
}

interface ObjectSchema {
  properties: Record<string, { items?: Json }>
  required?: string[]
  additionalProperties?: unknown
}

/** Headers that HTTP itself or the server adds: the API description need not name them. */
const PLAIN_HEADERS = [
  'content-type',
  'content-length',
  'date',
  'connection',
  'transfer-encoding',
  'vary',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'x-content-type-options',
]

/** A 503 says how long to wait only where somebody knows. */
const OPTIONAL_HEADERS = ['302 X-Robots-Tag', '503 Retry-After']

/** The description that the service publishes. */
export async function describeApi(app: TestApp): Promise<ApiDescription> {
  const { status, body } = await app.call('GET', '/docs/json')
  if (status !== 200) throw new Error(`/docs/json answers ${status}`)
  return new ApiDescription(body)
}

/** An OpenAPI 3.0 document as a judge of answers. */
export class ApiDescription {
  readonly document: Json
  readonly #ajv: Ajv
  readonly #validators = new Map<string, ValidateFunction>()
  readonly #seen = new Set<string>()

  constructor(document: Json) {
    this.document = document
    this.#ajv = new Ajv({ strict: false, validateSchema: false, allErrors: true })
    addFormats.default(this.#ajv)
    this.#ajv.addSchema(document, 'api')
  }

  /** Each with its method and path, as `GET /api/status`. The schemas of bodies have no `$ref`. */
  get operations(): Map<string, Operation> {
    const paths = this.document.paths as Record<string, Record<string, Operation>>
    const entries = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => {
        const parameters = operation.parameters.map((one) => this.#resolve(one).value as Parameter)
        const { requestBody } = operation
        return [
          `${method.toUpperCase()} ${path}`,
          {
            ...operation,
            parameters,
            ...(requestBody && { requestBody: this.#inline(requestBody) as typeof requestBody }),
          },
        ] as const
      }),
    )
    return new Map(entries)
  }

  /** What of the answer is not as the document says, a line each. */
  faultsOf(name: string, answer: Answer): string[] {
    const { status, headers } = answer
    const at = `${name} ${status}`
    const [method = '', path = ''] = name.split(' ')
    const pointer = ['paths', path, method.toLowerCase(), 'responses', String(status)]
    const found = this.#resolve(this.#get(pointer), pointer)
    const response = found.value as ResponseObject | undefined
    if (!response) return [`${at} is not documented`]
    this.#seen.add(at)
    return [
      ...this.#headerFaults(status, headers, response, found.pointer),
      ...this.#contentFaults(answer, response, found.pointer),
    ].map((fault) => `${at}: ${fault}`)
  }

  /** Whether the document takes this as the operation's body. */
  takesBody(name: string, body: unknown): boolean {
    const [method = '', path = ''] = name.split(' ')
    const pointer = ['paths', path, method.toLowerCase(), 'requestBody', 'content']
    return this.#validator([...pointer, 'application/json', 'schema'])(body) as boolean
  }

  /** Of an object that an answer is, or of the items of a list in it. */
  fieldsOf(name: string, status: number, inside: readonly string[] = []) {
    const [method = '', path = ''] = name.split(' ')
    const { value } = this.#resolve(
      this.#get(['paths', path, method.toLowerCase(), 'responses', String(status)]),
    )
    const content = (value as ResponseObject).content?.['application/json']
    let schema = this.#resolve(content?.schema).value as ObjectSchema
    for (const list of inside) {
      schema = this.#resolve(schema.properties[list]?.items).value as ObjectSchema
    }
    const { properties, required = [], additionalProperties } = schema
    const fields = Object.keys(properties).sort()
    return { fields, required: [...required].sort(), additionalProperties }
  }

  /** Documented answers that `faultsOf` has never been shown. */
  unseen(): string[] {
    const documented = [...this.operations].flatMap(([name, { responses }]) =>
      Object.keys(responses).map((status) => `${name} ${status}`),
    )
    return documented.filter((answer) => !this.#seen.has(answer))
  }

  #headerFaults(
    status: number,
    headers: Headers,
    { headers: documented = {} }: ResponseObject,
    pointer: readonly string[],
  ): string[] {
    const faults: string[] = []
    const names = Object.keys(documented)
    for (const name of names) {
      const text = headers.get(name)
      if (text === null) {
        if (!OPTIONAL_HEADERS.includes(`${status} ${name}`)) faults.push(`${name} is missing`)
        continue
      }
      const found = this.#resolve(documented[name], [...pointer, 'headers', name])
      const value = /^-?\d+$/.test(text) ? Number(text) : text
      faults.push(...this.#schemaFaults(`${name} ${text}`, value, [...found.pointer, 'schema']))
    }
    const known = [...PLAIN_HEADERS, ...names.map((name) => name.toLowerCase())]
    const more = [...headers.keys()].filter((name) => !known.includes(name))
    return [...faults, ...more.map((name) => `${name} is not documented`)]
  }

  #contentFaults(
    answer: Answer,
    { content }: ResponseObject,
    pointer: readonly string[],
  ): string[] {
    if (!content) return answer.bytes.length === 0 ? [] : ['a body is not documented']
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    if (!content[type]) return [`content type ${type} is not documented`]
    if (type !== 'application/json') return answer.bytes.length > 0 ? [] : ['the body is empty']
    return this.#schemaFaults('body', answer.body, [...pointer, 'content', type, 'schema'])
  }

  #schemaFaults(name: string, value: unknown, pointer: readonly string[]): string[] {
    const validate = this.#validator(pointer)
    if (validate(value)) return []
    return (validate.errors ?? []).map(({ instancePath, message }) => {
      return `${name}${instancePath} ${message}`
    })
  }

  #validator(pointer: readonly string[]): ValidateFunction {
    const steps = pointer.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1'))
    const $ref = `api#/${steps.map(encodeURIComponent).join('/')}`
    let validate = this.#validators.get($ref)
    if (!validate) {
      validate = this.#ajv.compile({ $ref })
      this.#validators.set($ref, validate)
    }
    return validate
  }

  /** Follows a `$ref` within the document. */
  #resolve(value: unknown, pointer: readonly string[] = []): { value: unknown; pointer: string[] } {
    const ref = (value as { $ref?: string } | undefined)?.$ref
    if (ref === undefined) return { value, pointer: [...pointer] }
    const steps = ref.slice('#/'.length).split('/')
    return this.#resolve(this.#get(steps), steps)
  }

  /** `value` with the schemas that it refers to. */
  #inline(value: unknown): unknown {
    return JSON.parse(JSON.stringify(value), (_, part) => {
      return part?.$ref === undefined ? part : this.#inline(this.#resolve(part).value)
    })
  }

  #get(pointer: readonly string[]): unknown {
    return pointer.reduce<unknown>(
      (value, step) => (value as Json | undefined)?.[step],
      this.document,
    )
  }
}
