import { z } from 'zod'

const Email = z.email().max(254)

/** An e-mail address without spaces around it; undefined for what is none. */
export const parseEmail = (text: string): string | undefined => Email.safeParse(text.trim()).data
