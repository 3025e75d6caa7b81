import { z } from 'zod'
import {
  AddressField,
  CountField,
  LookupView,
  PropertiesView,
  Tag,
  wholeNumber,
} from '../links/schema.ts'
import { LINK_STATES } from './link-sources.ts'

const LIST_LIMIT_MAX = 200
/** Characters. Longer texts take longer to compare and are not needed. */
export const SEARCH_MAX = 200
const SEARCH_TOO_LONG = `Invalid search: must have at most ${SEARCH_MAX} characters`

export const ListQuery = z.object({
  limit: wholeNumber(`Invalid limit: must be an integer between 1 and ${LIST_LIMIT_MAX}`, {
    minimum: 1,
    maximum: LIST_LIMIT_MAX,
    default: 50,
    description: 'How many codes to give.',
  }),
  offset: wholeNumber('Invalid offset: must be an integer of at least 0', {
    minimum: 0,
    default: 0,
    description: 'How many codes to skip.',
  }),
  search: z
    .string('Invalid search: must be a text')
    .refine((text) => [...text].length <= SEARCH_MAX, SEARCH_TOO_LONG)
    .optional()
    .meta({
      description: 'A part of the code or the URL, in any letter case.',
      maxLength: SEARCH_MAX,
    }),
})

const ListedView = LookupView.extend({ short_url: AddressField, qr_url: AddressField }).meta({
  id: 'ListedLink',
})

export const ListView = z
  .object({
    total: CountField,
    limit: CountField,
    offset: CountField,
    count: CountField,
    items: z.array(ListedView),
  })
  .meta({ id: 'LinkPage' })
export type ListView = z.infer<typeof ListView>

const BAD_STATE = `Invalid state: must be one of ${LINK_STATES.join(', ')}`

/** Parameters of a list of links with their properties. */
export const OwnListQuery = ListQuery.extend({
  search: ListQuery.shape.search.meta({
    description:
      'Words that the code, URL, title, tags, note or aliases contain, in any letter case and ' +
      'without accents; or a short URL.',
    maxLength: SEARCH_MAX,
  }),
  tag: Tag.optional().meta({ description: 'Only links with this tag.' }),
  state: z.enum(LINK_STATES, BAD_STATE).optional().meta({ description: 'What visitors find.' }),
})

export const OwnListView = ListView.extend({ items: z.array(PropertiesView) }).meta({
  id: 'OwnLinkPage',
})
export type OwnListView = z.infer<typeof OwnListView>
