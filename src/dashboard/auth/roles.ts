import { hasRole } from '../../accounts/roles.ts'
import type { Role } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'

/**
 * The role that a page or a form needs at least: that of the first line that matches its method
 * and path. A new page is for everybody in the account, and a new form for editors.
 */
const LEAST_ROLES: readonly (readonly [RegExp, Role])[] = [
  // About the person or the browser, whatever the role in this account.
  [
    /^POST \/app\/(sign-out|theme|account\/(open|password|sessions|two-factor|identities))\b/,
    'viewer',
  ],
  // Everybody may leave: the form checks who removes whom.
  [/^POST \/app\/account\/members\/[^/]+\/remove\b/, 'viewer'],
  // For owners of the service, which is no role in an account.
  [/^(GET|POST) \/app\/service\b/, 'viewer'],
  // Some of its actions only read: the others ask for an editor themselves.
  [/^POST \/app\/links\/batch\b/, 'viewer'],
  [/^POST \/app\/account\b/, 'admin'],
  [/^GET \/app\/account\/delete\b/, 'admin'],
  [/^(GET|POST) \/app\/links\/move\b/, 'admin'],
  [/^(GET|POST) \/app\/keys\b/, 'admin'],
  // Pages that do nothing but change something, and exports with the passcodes of links.
  [/^GET \/app\/links\/(bulk|import)\b/, 'editor'],
  [/^GET \/app\/links\/[^/]+\/(delete|settings)\b/, 'editor'],
  [/^GET \/app\/qr(?!\/logo\.png)/, 'editor'],
  [/^GET /, 'viewer'],
  [/^/, 'editor'],
]

/** `route`: method and path, for example `POST /app/links/:code/delete`. */
export const leastRoleOf = (route: string): Role =>
  LEAST_ROLES.find(([pattern]) => pattern.test(route))?.[1] ?? 'admin'

/** Whether a role may open a page, or send a form: pages offer nothing else. */
export const mayUse = (role: Role, method: 'GET' | 'POST', path: string): boolean =>
  hasRole(role, leastRoleOf(`${method} ${path}`))

/** Throws `role_needed` unless the role of the user in the account is at least this one. */
export function requireRole({ role }: { role: Role }, least: Role): void {
  if (!hasRole(role, least)) throw new AppError('role_needed', least)
}
