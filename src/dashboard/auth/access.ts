import { hasRole } from '../../accounts/roles.ts'
import type { Role } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { matches, segmentsOf } from '../../http/guard.ts'
import { assert } from '../../lib/assert.ts'

/** The least that a route needs: a role in the account, or to be an owner of the service. */
type LeastRole = Role | 'owner'

/** Pages with a navigation of their own: settings of the account, or of the service. */
export type Section = 'account' | 'service'

/** A name under which pages offer a route, or something that it makes possible. */
export interface Offer {
  label: string
  /** If it is not the path of the route. */
  href?: string
  /** In the navigation of each page. */
  place?: 'navigation'
  /** At the side of the pages of a section. All offers are in “Go to”. */
  section?: Section
  /** Other words that a person may type in “Go to”. */
  words?: string
}

/** What a route says about its users. Decision 070. */
export interface Access {
  role: LeastRole
  offers?: readonly Offer[]
}

interface User {
  role: Role
  isOwner: boolean
}

const permits = ({ role, isOwner }: User, least: LeastRole): boolean =>
  least === 'owner' ? isOwner : hasRole(role, least)

/** Throws `role_needed`. */
export function requireRole({ role }: Pick<User, 'role'>, least: Role): void {
  if (!hasRole(role, least)) throw new AppError('role_needed', least)
}

interface Listed {
  method: string
  path: string
  /** Undefined: for everybody. */
  access?: Access
}

/** All routes, for the parts of pages that offer them. */
export class AccessTable {
  readonly #offers: readonly (Offer & { href: string; least: LeastRole })[]
  readonly #exact: ReadonlyMap<string, Listed>
  readonly #patterns: readonly (Listed & { segments: readonly string[] })[]

  constructor(routes: readonly Listed[]) {
    this.#offers = routes.flatMap(({ path, access }) =>
      access?.offers
        ? access.offers.map((one) => ({ href: path, least: access.role, ...one }))
        : [],
    )
    this.#exact = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))
    this.#patterns = routes
      .filter(({ path }) => path.includes(':'))
      .map((route) => ({ ...route, segments: segmentsOf(route.path) }))
  }

  /** What pages ask before they offer something to a user. */
  of(user: User) {
    return {
      /** Whether the user may open a page, or send a form. */
      may: (method: 'GET' | 'POST', href: string): boolean => {
        const { access } = this.#find(method, href.replace(/\/?([?#].*)?$/, ''))
        return access === undefined || permits(user, access.role)
      },
      offers: this.#offers.filter(({ least }) => permits(user, least)),
    }
  }

  #find(method: string, path: string): Listed {
    const segments = segmentsOf(path)
    const found =
      this.#exact.get(`${method} ${path}`) ??
      this.#patterns.find((one) => one.method === method && matches(one.segments, segments))
    assert(found, `no route: ${method} ${path}`)
    return found
  }
}
