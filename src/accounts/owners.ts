/**
 * SQL: 1 if the account whose id is in a column has the rights of an owner of the service for its
 * links: the member who joined first is one. An owner who accepts the invitation of somebody else
 * gives that account no rights.
 */
export const isOwnersAccount = (id: string): string =>
  `coalesce((SELECT is_owner FROM memberships JOIN people ON people.id = memberships.person_id
     WHERE memberships.account_id = ${id}
     ORDER BY memberships.created_at, memberships.person_id LIMIT 1), 0)`
