/** The spec's chapter "Errors": every refusal with its status and exact message. */

const fixed = (status: number, message: string) => ({ status, message: () => message })
const detailed = (status: number, message: (detail: string) => string) => ({ status, message })
/** Shortens a client's text, which may be much longer than a code. */
const shorten = (code: string) => (code.length > 100 ? `${code.slice(0, 100)}…` : code)

const URL_BLOCKED = 'Destination URL is not allowed (host on abuse blocklist)'

export const REFUSALS = {
  invalid_url: fixed(400, 'Invalid URL: must start with http:// or https://'),
  invalid_code: fixed(400, 'Invalid code: must be 6-20 alphanumeric characters'),
  /** A value that its schema refuses, with the schema's message. */
  invalid_value: detailed(400, (message) => message),
  invalid_json: fixed(400, 'Invalid JSON: the request body must be a JSON document'),
  body_incomplete: fixed(400, 'The request body was cut off or is malformed'),
  invalid_api_key: fixed(401, 'Invalid or missing API key'),
  password_required: detailed(401, (code) => `Password required for code ${code}`),
  wrong_password: detailed(403, (code) => `Wrong password for code ${code}`),
  invalid_passcode: detailed(403, (code) => `Invalid passcode for code ${shorten(code)}`),
  read_only_key: fixed(403, 'The access of this API key does not permit this request'),
  foreign_site: fixed(403, 'This API key is not for pages of this site'),
  manage_key_needed: fixed(
    403,
    'This API key cannot change destinations or delete links without passcodes: an admin can ' +
      'create one that can',
  ),
  code_not_found: detailed(404, (code) => `Code not found: ${shorten(code)}`),
  link_disabled: detailed(410, (code) => `Link disabled: ${code}`),
  link_expired: detailed(410, (code) => `Link expired: ${code}`),
  webhook_not_found: detailed(404, (id) => `Webhook not found: ${shorten(id)}`),
  path_not_found: fixed(404, 'Not found'),
  misdirected: fixed(421, 'This host has short links only. Use the host of BASE_URL.'),
  method_not_allowed: detailed(405, (method) => `Method not allowed: ${method}`),
  code_in_use: detailed(409, (code) => `Code already in use: ${code}`),
  path_taken: detailed(409, (path) => `Path already in use: ${shorten(path)}`),
  path_differs_in_case: detailed(
    409,
    (path) =>
      `Path already in use: ${shorten(path)} differs from another path in letter case only. ` +
      'Choose other words.',
  ),
  alias_not_allowed: fixed(
    403,
    'Only owners of the service can add aliases. Use a code of 6 to 20 letters and digits, or ' +
      'ask an owner to allow other paths',
  ),
  destinations_not_allowed: fixed(403, 'Only owners of the service can add destinations'),
  invalid_utf8: fixed(400, 'Invalid JSON: the request body is not valid UTF-8'),
  body_too_large: detailed(413, (limit) => `Request body too large: at most ${limit}`),
  unsupported_media_type: detailed(
    415,
    (type) => `Unsupported media type: send Content-Type: ${type || 'application/json'}`,
  ),
  unsupported_charset: fixed(415, 'Unsupported charset: send the request body in UTF-8'),
  unsupported_encoding: fixed(
    415,
    'Unsupported content encoding: send the request body uncompressed',
  ),
  url_blocked: fixed(422, URL_BLOCKED),
  /** A URL of this service itself. The API words it as it does a host on a list. */
  own_host: fixed(422, URL_BLOCKED),
  rate_limited: detailed(429, (seconds) => `Rate limit exceeded. Retry in ${seconds} seconds.`),
  too_many_attempts: detailed(
    429,
    (seconds) => `Too many attempts. Try again in ${seconds} seconds.`,
  ),
  role_needed: detailed(
    403,
    (role) =>
      `This needs the role ${role} in the account. Its admins can give it to you, on the page ` +
      'Members.',
  ),
  form_expired: fixed(
    403,
    'This form is no longer valid, or was sent from another site. Open the page again and retry.',
  ),
  cookie_missing: detailed(
    403,
    (address) =>
      'Your browser sent no cookie with this form. It keeps none for pages that were opened over ' +
      `http: open ${address}`,
  ),
  form_too_large: detailed(413, (limit) => `The form is too large: at most ${limit}.`),
  too_many_fields: fixed(400, 'The form has too many fields.'),
  unsupported_form: fixed(415, 'This is not a form that the page understands.'),
  sign_in_needed: fixed(401, 'Sign in first.'),
  page_not_found: fixed(404, 'There is no such page.'),
  link_over: fixed(404, 'This link has been used, has been replaced, or is too old.'),
  email_taken: detailed(409, (email) => `${shorten(email)} already has an account.`),
  password_needed: fixed(
    422,
    'This address already has an account. Enter its current password, or choose another address ' +
      'if you do not know it.',
  ),
  member_exists: detailed(409, (email) => `${shorten(email)} is a member of the account already.`),
  not_a_member: fixed(409, 'This person is not a member any more.'),
  last_admin: fixed(
    409,
    'An account has at least one admin. Make somebody else an admin first, or delete the account.',
  ),
  last_owner: fixed(
    409,
    'This is the only owner of the service, which cannot be disabled, removed or deleted.',
  ),
  too_many_members: detailed(
    422,
    (most) => `An account has at most ${most} members and invitations.`,
  ),
  too_many_invitations: detailed(
    422,
    (most) => `${most} invitations are pending. Withdraw some first.`,
  ),
  key_name_taken: fixed(409, 'One of your keys has this name already. Choose another.'),
  too_many_keys: detailed(
    422,
    (most) => `An account can have ${most} keys, and as many that expire. Revoke old ones first.`,
  ),
  key_gone: fixed(
    409,
    'Nothing was changed: this key was rotated or revoked since the page was shown. A form that ' +
      'is sent twice creates one key.',
  ),
  account_full: fixed(422, 'The account has as many members as it can have.'),
  internal: fixed(500, 'Internal server error'),
  maintenance: detailed(503, (until) => `Service under maintenance until ${until}`),
  overloaded: fixed(503, 'Too much data is being transferred. Try again in a few seconds.'),
  import_running: fixed(503, 'Other imports are running. Try again when they have ended.'),
  busy: fixed(
    503,
    'Many people are entering passwords at this moment. Try again in a few seconds.',
  ),
  visits_timeout: fixed(503, 'The details took too long to read. Choose fewer days, or try again.'),
  search_timeout: fixed(503, 'The search took too long. Try again in a moment.'),
  prefetched: fixed(503, 'A link with a maximum number of hits is not answered in advance'),
  quota_exceeded: detailed(422, (quota) => `Quota exceeded: ${quota}`),
  stopping: fixed(503, 'Service is stopping'),
  thread_ended: detailed(503, (name) => `Service degraded: its ${name} thread has ended`),
  thread_hanging: detailed(503, (name) => `Service degraded: its ${name} thread does not answer`),
  not_following: fixed(503, 'Service degraded: this host does not follow the log of its cluster'),
  unhealthy: fixed(503, 'Service degraded: the database does not answer'),
} as const

type RefusalCode = keyof typeof REFUSALS

interface Extras {
  headers?: Readonly<Record<string, string>>
  fields?: Readonly<Record<string, unknown>>
}

/** An expected refusal, safe to show. `detail` completes the message if the table has a place. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: RefusalCode
  readonly status: number
  /** Headers of this response, like `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>
  /** Fields of a 5xx body in addition to `error` and `request_id`. */
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: RefusalCode, detail = '', { headers = {}, fields = {} }: Extras = {}) {
    super(REFUSALS[code].message(detail))
    this.code = code
    this.status = REFUSALS[code].status
    this.headers = headers
    this.fields = fields
  }
}

/** For a refusal after which the client may try again. */
export const retryAfter = (seconds: number) => ({ headers: { 'retry-after': String(seconds) } })

/**
 * The 503 of a service that runs but is unhealthy. `thread`: the name of the failed thread.
 * `reason`: for operators only.
 */
export const degradedError = (
  code: 'thread_ended' | 'thread_hanging' | 'not_following' | 'unhealthy',
  database: 'ok' | 'error',
  { thread, reason }: { thread?: string; reason?: string | undefined } = {},
): AppError =>
  new AppError(code, thread, {
    headers: { 'retry-after': '1' },
    fields: { status: 'degraded', database, ...(reason && { reason }) },
  })
