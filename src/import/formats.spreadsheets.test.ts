import { expect, test } from 'bun:test'
import { imported } from '../../test/support/imported.ts'

/** Files of people, whose columns have the names that services use. */

const HEADS: [head: string, row: string, format: string][] = [
  ['id,url,slug', '1,https://e.com/,Promo', 'csv'],
  ['ID;Slug;URL;Title', '1;Promo;https://e.com/;t', 'csv'],
  ['Short code,Long URL', 'Promo,https://e.com/', 'csv'],
  ['Short URL,Short code,Long URL,Title,Tags,Created at,Hits', ',Promo,https://e.com/,,,,', 'csv'],
  ['Address,Target', 'Promo,https://e.com/', 'csv'],
  ['Short link,Long link', 'Promo,https://e.com/', 'csv'],
  ['ID,Link,Long URL', '1,Promo,https://e.com/', 'csv'],
  ['Key,URL,Domain', 'Promo,https://e.com/,', 'csv'],
]
test.each(HEADS)(
  'a spreadsheet with the columns %s is no export of a service',
  async (head, row, format) => {
    const twin = row.replace('Promo', 'promo').replace('e.com', 'other.example')
    const found = await imported([`${head}\n${row}\n${twin}\n`])
    expect(found.format as string).toBe(format)
    expect(found.lines).toMatchObject([
      { url: 'https://e.com/', aliases: ['Promo'] },
      { url: 'https://other.example/', aliases: ['promo'] },
    ])
    for (const line of found.lines) expect(line).not.toHaveProperty('forward_query')
  },
)
