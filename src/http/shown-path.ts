/** A request's path as logs may keep it: without the secret of a one-time link. */
export const shownPath = (path: string): string =>
  path.replace(/^(\/+app\/+(?:setup|join|reset)\/+).*$/i, '$1…')
