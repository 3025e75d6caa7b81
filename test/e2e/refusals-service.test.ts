import type { TestApp } from '../support/app.ts'
import { setUpOwner } from '../support/dashboard.ts'
import { messageOf } from '../support/refusals.ts'
import { each, type Scenario, scenarios } from '../support/scenario.ts'
import { sharedApp } from '../support/shared.ts'

/** What the pages of the service refuse its owner. `dashboard-service` has who may open them. */

const SERVICE = '/app/service'
const ACCOUNTS = `${SERVICE}/accounts`
const HOSTS = `${SERVICE}/hosts`
const LINKS = `${SERVICE}/links`

/** The owner has account 1; another one has a link. */
async function service(app: TestApp) {
  const { owner } = await setUpOwner(app)
  await app.claim('PHISH01', 'https://phish.example/')
  return { who: { owner } }
}

const who = 'owner'
const BAD_HOSTS = ['', ' ', 'com', 'localhost', 'https://', 'bad example', 'ftp://x.example/']
const BAD_REASONS = ['', '   ', 'x'.repeat(201), 'a\u0007b', 'a\nb']
const NO_IDS = ['0', '999', '1x', 'x', '-1', '99999999999999999999']
const BAD_TIMES = ['', 'tomorrow', '2026-02-30T25:00', '2026-04-31T12:00', '2026-03-01T12:00']
const NO_LINKS = ['NOBODYS1', 'no%20code', '%22%3E%3Cscript%3E', 'nowhere.example', 'ab', '%25']

const ROWS: Scenario<'owner'>[] = [
  {
    who,
    request: `POST ${ACCOUNTS}/invites`,
    refused: {
      email: each('email', ['ann', 'OWNER@example.com'], { plan: 'pro' }),
      '': each('plan', ['', 'toString'], { email: 'ann@example.com' }),
    },
    from: ACCOUNTS,
    keeps: ['email'],
    not: '/app/join/',
  },
  { who, request: NO_IDS.map((id) => `GET ${ACCOUNTS}/${id}` as const), status: 404 },
  { who, request: `GET ${ACCOUNTS}/999/links`, status: 404 },
  {
    who,
    request: NO_IDS.map((id) => `POST ${ACCOUNTS}/${id}/plan` as const),
    fields: { plan: 'pro' },
    from: ACCOUNTS,
    status: 404,
  },
  { who, request: `GET ${ACCOUNTS}/1/disable`, status: 200, body: 'the only owner' },
  {
    who,
    request: `POST ${ACCOUNTS}/1/disable`,
    from: '/app/account',
    body: messageOf('last_owner'),
  },
  {
    who,
    request: `POST ${SERVICE}/maintenance`,
    refused: { at: each('at', [...BAD_TIMES, '2026-05-01T12:00'], { length: 'at' }) },
    from: SERVICE,
    body: 'value="at" selected',
  },
  {
    who,
    request: `POST ${SERVICE}/domains`,
    refused: {
      host: each('host', ['https://x.example/', 'hop.test']),
      email: [{ host: 'a.example', for: 'account', email: 'nobody@example.com' }],
      root_url: [{ host: 'a.example', root_url: 'ftp://a.example' }],
      not_found_url: [{ host: 'a.example', not_found_url: 'http://hop.test/x' }],
    },
    keeps: ['host'],
  },
  {
    who,
    request: `POST ${HOSTS}`,
    refused: {
      host: each('host', BAD_HOSTS, { reason: 'Reported' }),
      reason: each('reason', BAD_REASONS, { host: 'bad.example' }),
    },
  },
  {
    who,
    request: `POST ${LINKS}/PHISH01/disable`,
    refused: { reason: each('reason', BAD_REASONS) },
    from: `${LINKS}/PHISH01`,
  },
  {
    who,
    request: NO_LINKS.map((text) => `GET ${LINKS}?code=${text}` as const),
    refused: { code: [{}] },
    not: '><script>',
  },
  { who, request: `GET ${LINKS}/NOBODYS1`, status: 404 },
  {
    who,
    request: `POST ${LINKS}/NOBODYS1/disable`,
    fields: { reason: 'x' },
    from: LINKS,
    status: 404,
  },
]

scenarios(sharedApp(service), ROWS)
