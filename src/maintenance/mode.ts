import type { SettingStore } from '../db/settings.ts'
import type { Clock } from '../lib/clock.ts'

const NAME = 'maintenance_until'

/** The setting to store: maintenance until an epoch time; undefined ends it. */
export const maintenanceSetting = (until: number | undefined): { name: string; value: string } => ({
  name: NAME,
  value: String(until ?? 0),
})

/**
 * Planned maintenance, stored in the database: a command applies to the running server at once.
 */
export class MaintenanceMode {
  readonly #settings: Pick<SettingStore, 'findByName'>
  readonly #clock: Clock

  constructor(settings: Pick<SettingStore, 'findByName'>, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
  }

  /** When the active maintenance ends (epoch ms); undefined if none is active. */
  until(): number | undefined {
    const until = Number(this.#settings.findByName(NAME) ?? 0)
    return until > this.#clock() ? until : undefined
  }
}
