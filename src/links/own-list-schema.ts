import { z } from 'zod'
import { LINK_STATES } from './link-sources.ts'
import { ListQuery, ListView, PropertiesView, SEARCH_MAX, Tag } from './schema.ts'

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
