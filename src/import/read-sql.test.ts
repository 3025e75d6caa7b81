import { expect, test } from 'bun:test'
import { imported } from '../../test/support/imported.ts'

/** Dumps of databases: in which column of its table each value is. */

const YOURLS_TABLE = `CREATE TABLE \`yourls_url\` (
  \`keyword\` varchar(100) NOT NULL DEFAULT '',
  \`url\` text NOT NULL,
  \`title\` text,
  \`timestamp\` timestamp NOT NULL DEFAULT current_timestamp(),
  \`ip\` varchar(41) NOT NULL,
  \`clicks\` int(10) unsigned NOT NULL,
  PRIMARY KEY (\`keyword\`),
  KEY \`timestamp\` (\`timestamp\`)
);`

/** The same table on other lines, with further definitions that have commas and parentheses. */
const YOURLS_TABLES: Record<string, string> = {
  'two columns on one line': YOURLS_TABLE.replace("'',\n", "'', "),
  'all on one line': YOURLS_TABLE.replaceAll('\n', ' '),
  'without spaces between': YOURLS_TABLE.replace(/,\n +/g, ','),
  'Windows line ends and tabs': YOURLS_TABLE.replaceAll('\n  ', '\r\n\t'),
  'names without quotes': YOURLS_TABLE.replaceAll('`', ''),
  'names in the quotes of PostgreSQL': YOURLS_TABLE.replaceAll('`', '"'),
  'another schema and CREATE TABLE IF NOT EXISTS': YOURLS_TABLE.replace(
    'TABLE `yourls_url`',
    'TABLE IF NOT EXISTS `db`.`yourls_url`',
  ),
  'commas, parentheses and quotes in a column': YOURLS_TABLE.replace(
    '`title` text',
    "`title` enum('a, `b` text', 'c)', 'it''s', 'd\\', `e`') CHECK (f(`title`, ')') > (1)) COMMENT 'x, (y'",
  ),
  comments: YOURLS_TABLE.replace(
    '`title` text,',
    "-- the page's title, `a` text,\n `title` text /* , `b` text; (it's */, # it's `c`, (\n",
  ),
  'keys before and between the columns': YOURLS_TABLE.replace(
    '(\n',
    '(PRIMARY KEY (`keyword`), UNIQUE KEY `my-key` (`url`(255), `ip`),\n',
  ).replace(
    '`ip`',
    'CONSTRAINT c CHECK (`clicks` > 0), FULLTEXT KEY f (`title`), INDEX (`url`), KEY k USING BTREE (`ip`), `ip`',
  ),
}

const YOURLS_LINE = {
  url: "https://example.com/?a='x'",
  title: "It's; (x), -- /* no",
  created_at: '2022-04-14T08:28:57.000Z',
  hits: 10,
  aliases: ['1'],
}
const YOURLS_VALUES =
  "('1','https://example.com/?a=\\'x\\''," +
  "'It''s; (x), -- /* no','2022-04-14 08:28:57','::1',10)"

test.each(Object.entries(YOURLS_TABLES))(
  'a dump whose table has %s keeps each value in its column',
  async (_, table) => {
    expect(await imported([`${table}\nINSERT INTO yourls_url VALUES ${YOURLS_VALUES};\n`]))
      // The order of rows and the database of the table are the same in each.
      .toMatchObject({ format: 'yourls', lines: [YOURLS_LINE] })
  },
)

test('a dump of SQLite, and columns named in another order on several lines', async () => {
  const sqlite =
    'PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE urls (id INTEGER PRIMARY KEY, ' +
    'key TEXT, long_url TEXT NOT NULL, short_url TEXT, hits INTEGER DEFAULT (1+(2)), expiry_time ' +
    "INTEGER);\nINSERT INTO urls VALUES(1,'k','https://e.com/a','One',5,0);\nCOMMIT;\n"
  expect((await imported([sqlite])).lines).toEqual([
    { url: 'https://e.com/a', hits: 5, aliases: ['One'] },
  ])
  const named =
    `${YOURLS_TABLE}\nREPLACE  INTO \`yourls_url\`\r\n(\`clicks\`,\r\n\t\`url\`, keyword)\r\n` +
    "VALUES\r\n(\t3,\r\n'https://e.com/b'\t,\r\n'two'\r\n),\r\n(4,'https://e.com/c','three');\r\n"
  expect((await imported([named])).lines).toEqual([
    { url: 'https://e.com/b', hits: 3, aliases: ['two'] },
    { url: 'https://e.com/c', hits: 4, aliases: ['three'] },
  ])
})

test('a row that has another number of values than its table has columns is refused with both', async () => {
  const row = "('1','https://e.com/','t',1)"
  for (const columns of ['', ' (keyword, url, clicks)']) {
    const dump = `${YOURLS_TABLE}\nINSERT INTO yourls_url${columns} VALUES ${row};\n`
    await expect(imported([dump])).rejects.toThrow(
      `links has a row with 4 values for ${columns ? 3 : 6} columns (keyword, url, `,
    )
  }
})
