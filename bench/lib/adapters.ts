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

const named = (id: string): CreatedLink => ({ path: `/${id}`, id })

const yourls = (key: string, parameters: Record<string, string>): ApiCall => ({
  path: `/yourls-api.php?${new URLSearchParams({ ...parameters, signature: key, format: 'json' })}`,
})

/** Only Hopcode was run; the others are written from the sources that docs/comparison.md names. */
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
  shlink: {
    headers: (key) => ({ 'X-Api-Key': key }),
    create: (url, tag) => ({
      method: 'POST',
      path: '/rest/v3/short-urls',
      body: { longUrl: url, tags: [tag] },
    }),
    created: (answer) => named(json<{ shortCode: string }>(answer).shortCode),
    count: ({ id }) => ({ path: `/rest/v3/short-urls/${id}` }),
    counted: (answer) => json<{ visitsSummary: { total: number } }>(answer).visitsSummary.total,
    remove: ({ id }) => ({ method: 'DELETE', path: `/rest/v3/short-urls/${id}` }),
  },
  kutt: {
    headers: (key) => ({ 'X-API-KEY': key }),
    create: (url, tag) => ({
      method: 'POST',
      path: '/api/v2/links',
      body: { target: url, description: tag },
    }),
    created: (answer) => {
      const { id, address } = json<{ id: string; address: string }>(answer)
      return { id, path: `/${address}` }
    },
    count: ({ id }) => ({ path: `/api/v2/links/${id}/stats` }),
    counted: (answer) => json<{ visit_count: number }>(answer).visit_count,
    remove: ({ id }) => ({ method: 'DELETE', path: `/api/v2/links/${id}` }),
  },
  yourls: {
    headers: () => ({}),
    // Without a title, it would fetch that of the destination.
    create: (url, tag, key) => yourls(key, { action: 'shorturl', url, title: tag }),
    created: (answer) => named(json<{ url: { keyword: string } }>(answer).url.keyword),
    count: ({ id }, key) => yourls(key, { action: 'url-stats', shorturl: id }),
    counted: (answer) => Number(json<{ link: { clicks: string } }>(answer).link.clicks),
    // Of the plugin "API Action - Delete".
    remove: ({ id }, key) => yourls(key, { action: 'delete', shorturl: id }),
  },
  chhoto: {
    headers: (key) => ({ 'X-API-Key': key }),
    create: (url) => ({ method: 'POST', path: '/api/new', body: { shortlink: '', longlink: url } }),
    created: (answer) => {
      const { pathname } = new URL(json<{ shorturl: string }>(answer).shorturl)
      return named(pathname.slice(1))
    },
    count: ({ id }) => ({ method: 'POST', path: '/api/expand', body: id }),
    counted: (answer) => json<{ hits: number }>(answer).hits,
    remove: ({ id }) => ({ method: 'DELETE', path: `/api/del/${id}` }),
  },
}
