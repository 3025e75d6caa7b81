import { PLANS, type Plan, type PlanLimits, planName } from '../accounts/plans.ts'

/** The first part of the API page, in Markdown. */
export const introduction = (
  baseUrl: string,
  limits: Readonly<Record<Plan, PlanLimits>>,
): string => `Short links and QR codes. \`shorten\` creates a code for a URL. \`reserve\` claims a
code of your choice, and \`update\` gives it a destination. Both return a passcode, which is shown
once and is needed to change or delete the code.

## First request

Create an API key on the **Keys** page of the dashboard, and send it in the \`X-API-Key\` header,
or as \`Authorization: Bearer\`:

\`\`\`sh
curl ${baseUrl}/api/shorten \\
  -H "X-API-Key: $HOPCODE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"url": "https://example.com/spring"}'
\`\`\`

To try requests on this page, press **Authorize** and paste the key. The page keeps it while the
tab is open.

## Limits

Requests in any 60 seconds, per account. Reads and changes have separate budgets. A batch is one
change.

| Plan | Changes | Reads | URLs in a batch |
| --- | --- | --- | --- |
${PLANS.map((plan) => planRow(plan, limits[plan])).join('\n')}

Every response has \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\`.

## Errors and retries

An error is \`{"error": "…"}\`. A failure of the service (5xx) also has a \`request_id\` to report.
An unknown field is refused with 400 and its name: nothing that you send is dropped silently.

- **Do not retry** 400, 401, 403, 404, 409 and 422: the same request fails again.
- **Retry** 429, 500, 502, 503, 504 and network errors, at most five times, after 1, 2, 4, 8 and 16
  seconds, with about 25 % jitter. If the response has \`Retry-After\`, wait that many seconds
  instead.

Sending a URL again returns the code that the account already has for it, so \`shorten\` is safe to
retry, and so is \`update\`.
`

const planRow = (plan: Plan, { write, read, bulkMax }: PlanLimits): string =>
  `| ${planName(plan)} | ${budget(write)} | ${budget(read)} | ${bulkMax.toLocaleString('en')} |`

const budget = (n: number): string => (n === 0 ? 'no limit' : n.toLocaleString('en'))
