import type { Role } from './store.ts'

/** From the one that may do the least. Each may do what those before it may. */
export const ROLES = ['viewer', 'editor', 'admin'] as const satisfies readonly Role[]

/** As pages show it. */
export const roleName = (role: Role): string => role.slice(0, 1).toUpperCase() + role.slice(1)

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text)

/** Whether a role may do what needs another one at least. */
export const hasRole = (role: Role, least: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(least)
