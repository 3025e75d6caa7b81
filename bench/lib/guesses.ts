import type { Target } from './request.ts'

/** Addresses that guess the password of a link, each of a network of its own. */
export const GUESSERS = 200

/** Of a service that takes the addresses of the guesses from their header. */
export const GUESS_SETTINGS = { TRUSTED_PROXIES: '127.0.0.1' }

/** A guess of each address. Most are refused before they are compared. `code`: of the link. */
export const guessTargets = (code: string): Target[] =>
  Array.from({ length: GUESSERS }, (_, n) => ({
    path: `/${code}`,
    headers: {
      'X-Forwarded-For': `10.0.${n}.1`,
      Authorization: `Basic ${btoa(`:guess ${n}`)}`,
    },
    status: 403,
  }))
