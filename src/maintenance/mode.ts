import type { SettingStore } from '../db/settings.ts'
import type { Clock } from '../lib/clock.ts'

const NAME = 'maintenance_until'

/** The setting that begins maintenance until an epoch time, or ends it, for the writer thread. */
export const maintenanceSetting = (until: number | undefined): { name: string; value: string } => ({
  name: NAME,
  value: String(until ?? 0),
})

/**
 * Planned maintenance, kept in the database so that the command line and the server agree at once.
 */
export class MaintenanceMode {
  readonly #settings: SettingStore
  readonly #clock: Clock

  constructor(settings: SettingStore, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
  }

  /** When the maintenance now in force ends (epoch ms); undefined when there is none. */
  until(): number | undefined {
    const until = Number(this.#settings.find(NAME) ?? 0)
    return until > this.#clock() ? until : undefined
  }

  begin(until: number): void {
    this.#settings.set(NAME, String(until))
  }

  end(): void {
    this.#settings.delete(NAME)
  }
}
