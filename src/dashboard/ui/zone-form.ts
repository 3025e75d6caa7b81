import type { AccountRow } from '../../accounts/store.ts'
import { isTimeZone, TIME_ZONES } from '../../hits/range.ts'
import { type Html, html } from '../../lib/html.ts'
import type { CurrentUser } from '../auth/guard.ts'
import * as parts from './components.ts'
import { zoneName } from './hit-chart.ts'

/** The time zone of the account's days. */
export const zoneOf = ({ timeZone }: AccountRow): string =>
  timeZone !== null && isTimeZone(timeZone) ? timeZone : 'UTC'

/** The path that sets the account's time zone. */
const ACTION = '/app/account/time-zone'

/** The form of the account page. The script suggests the browser's time zone. */
export const zoneForm = (user: CurrentUser, zone: string): Html =>
  parts.form(
    user,
    ACTION,
    [
      parts.select({
        name: 'zone',
        label: 'Days of the analytics begin at midnight in',
        choices: TIME_ZONES.map((value) => ({ value, label: zoneName(value) })),
        value: zone,
      }),
      html`<p class="hint" data-zone-hint hidden></p>`,
      parts.button('Set the time zone', 'plain'),
    ],
    { id: 'time-zone' },
  )

/** Offers the browser's time zone to an account without one. Shown by the script. */
export const zoneSuggestion = (user: CurrentUser): Html =>
  parts.form(
    user,
    ACTION,
    [
      parts.hiddenFields({ zone: '', next: 'analytics' }),
      html`<p>Days begin at midnight UTC. Your browser is in <strong data-zone></strong>.</p>`,
      parts.button('Use this time zone', 'plain'),
    ],
    { class: 'form row', 'data-zone-suggestion': true, hidden: true },
  )
