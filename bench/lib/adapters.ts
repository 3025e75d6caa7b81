import type { ApiAnswer, ApiCall } from './deployment.ts'

/** What a creation returns of a link. */
export interface CreatedLink {
  /** Path of the short URL. */
  path: string
  /** What the other calls need. */
  id: string
  secret?: string
}

/** The API of one service, as requests and what to read in their responses. */
export interface Adapter {
  /** Headers of every call. */
  headers: (key: string) => Record<string, string>
  create: (url: string, tag: string, key: string) => ApiCall
  created: (answer: ApiAnswer) => CreatedLink
  count: (link: CreatedLink, key: string) => ApiCall
  counted: (answer: ApiAnswer) => number
  remove: (link: CreatedLink, key: string) => ApiCall
}

const json = <Body>({ text }: ApiAnswer) => JSON.parse(text) as Body

export const ADAPTERS: Readonly<Record<string, Adapter>> = {
  hopcode: {
    headers: (key) => ({ 'X-API-Key': key }),
    create: (url, tag) => ({ method: 'POST', path: '/api/shorten', body: { url, tags: [tag] } }),
    created: (answer) => {
      const { code, passcode } = json<{ code: string; passcode: string }>(answer)
      return { path: `/${code}`, id: code, secret: passcode }
    },
    count: ({ id }) => ({ path: `/api/lookup/${id}` }),
    counted: (answer) => json<{ hit_count: number }>(answer).hit_count,
    remove: ({ id, secret = '' }) => ({
      method: 'POST',
      path: '/api/delete',
      body: { code: id, passcode: secret },
    }),
  },
}
