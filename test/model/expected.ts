/** What an answer must be, and how a real one is held against it. */

import type { Answer } from '../support/app.ts'

/**
 * A RegExp stands for a text of which the contract fixes only the form. A header that is null must
 * be absent. `body` is undefined where the answer has no JSON. `learn` takes over what only the
 * service could choose, and throws where that cannot be.
 */
export interface Expected {
  status: number
  headers: Record<string, string | RegExp | null>
  body: unknown
  learn?: (body: Record<string, unknown>) => void
}

export type Success = Omit<Expected, 'headers'> & Partial<Pick<Expected, 'headers'>>

/** An answer that ends the work on a request. */
export class Refusal {
  readonly status: number
  readonly error: string | RegExp
  readonly headers: Record<string, string>

  constructor(status: number, error: string | RegExp, headers: Record<string, string> = {}) {
    this.status = status
    this.error = error
    this.headers = headers
  }

  get body() {
    return this.status >= 500 ? { error: this.error, request_id: /./ } : { error: this.error }
  }
}

/** How the answer differs, a line each; else what it tells is learnt. */
export function differences(expected: Expected, answer: Answer): string[] {
  const found = unlike(expected, answer)
  if (found.length > 0) {
    return [...found, `the answer: ${answer.status} ${answer.text.slice(0, 1000)}`]
  }
  try {
    expected.learn?.(answer.body)
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

/** How the answer differs, a line each. Learns nothing. */
export function unlike(expected: Expected, { status, headers, body }: Answer): string[] {
  const found = compare(expected.status, status, 'status')
  for (const [name, value] of Object.entries(expected.headers)) {
    found.push(...compare(value, headers.get(name), name))
  }
  if (expected.body !== undefined) found.push(...compare(expected.body, body, 'body'))
  else if (Object.keys(body).length > 0) found.push('a body where none belongs')
  return found
}

function compare(expected: unknown, found: unknown, at: string): string[] {
  const differs = [`${at} is ${show(found)}, not ${show(expected)}`]
  if (expected instanceof RegExp) {
    return typeof found === 'string' && expected.test(found) ? [] : differs
  }
  if (typeof expected !== 'object' || expected === null) return expected === found ? [] : differs
  if (typeof found !== 'object' || found === null) return differs
  if (Array.isArray(expected) !== Array.isArray(found)) return differs
  const names = new Set([...Object.keys(expected), ...Object.keys(found)])
  return [...names].flatMap((name) =>
    compare(Reflect.get(expected, name), Reflect.get(found, name), `${at}.${name}`),
  )
}

const show = (value: unknown) => (value instanceof RegExp ? String(value) : JSON.stringify(value))
