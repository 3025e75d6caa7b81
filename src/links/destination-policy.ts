import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import type { RuledDestination } from './destination-rules.ts'

interface PolicyOptions {
  /**
   * Who may add destinations. Rules for languages and countries can hide a page from a reviewer
   * elsewhere.
   */
  destinationRules: 'owners' | 'all'
  /** Undefined: the country of a visitor is not known. */
  countryFile: string | undefined
  countryHeader: string | undefined
  data: { accounts: { findById(id: AccountId): { isOwner: number } | undefined } }
}

const NO_COUNTRIES = 'Invalid destinations: country needs COUNTRY_FILE or COUNTRY_HEADER'

/** Which destinations by rule may be added. */
export class DestinationPolicy {
  readonly #options: PolicyOptions

  constructor(options: PolicyOptions) {
    this.#options = options
  }

  mayAdd(accountId: AccountId): boolean {
    return !this.isForOwners || this.#options.data.accounts.findById(accountId)?.isOwner === 1
  }

  get isForOwners(): boolean {
    return this.#options.destinationRules === 'owners'
  }

  get hasCountries(): boolean {
    const { countryFile, countryHeader } = this.#options
    return countryFile !== undefined || countryHeader !== undefined
  }

  /** Throws `destinations_not_allowed` or `invalid_value` if the account cannot add one. */
  requireAllowed(accountId: AccountId, added: readonly RuledDestination[] = []): void {
    if (added.length > 0 && !this.mayAdd(accountId)) throw new AppError('destinations_not_allowed')
    if (!this.hasCountries && added.some(({ when }) => when.country)) {
      throw new AppError('invalid_value', NO_COUNTRIES)
    }
  }
}
