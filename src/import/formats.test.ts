import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { type Content, imported } from '../../test/support/imported.ts'

/** What the files of other services become: lines of Hopcode's own format. */

const SHLINK_LINK = {
  shortCode: 'spring-sale',
  shortUrl: 'https://s.test/spring-sale',
  longUrl: 'https://example.com/',
  dateCreated: '2016-05-02T17:49:53+02:00',
  tags: ['poster'],
  meta: { validSince: null, validUntil: '2030-01-01T00:00:00+00:00', maxVisits: 9 },
  domain: null,
  title: '',
  crawlable: false,
  forwardQuery: false,
  visitsSummary: { total: 4, nonBots: 3, bots: 1 },
  hasRedirectRules: true,
}
const shlinkPage = (currentPage: number, pagesCount: number, link: object = SHLINK_LINK) =>
  JSON.stringify({ shortUrls: { data: [link], pagination: { currentPage, pagesCount } } })

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

const KUTT_LINE = {
  code: 'aBc123',
  url: 'https://example.com/',
  note: 'tab\there',
  created_at: '2022-04-14T08:28:57.155Z',
  expires_at: '2030-01-02T03:04:05.000Z',
  hits: 3,
}

function sqliteOf(...statements: string[]): Uint8Array<ArrayBuffer> {
  using db = new Database(':memory:')
  for (const sql of statements) db.run(sql)
  return new Uint8Array(db.serialize())
}

const SOURCES: [name: string, format: string, contents: Content[], lines: object[]][] = [
  [
    'REST',
    'shlink',
    [shlinkPage(1, 2), shlinkPage(2, 2, { ...SHLINK_LINK, shortUrl: 'https://s.test/%C3%BC/x' })],
    [
      {
        url: 'https://example.com/',
        tags: ['poster'],
        created_at: '2016-05-02T15:49:53.000Z',
        expires_at: '2030-01-01T00:00:00.000Z',
        max_hits: 9,
        hits: 4,
        aliases: ['spring-sale'],
      },
      {
        url: 'https://example.com/',
        tags: ['poster'],
        created_at: '2016-05-02T15:49:53.000Z',
        expires_at: '2030-01-01T00:00:00.000Z',
        max_hits: 9,
        hits: 4,
        aliases: ['ü/x'],
      },
    ],
  ],
  [
    'web client CSV',
    'shlink',
    [
      'createdAt,domain,shortCode,shortUrl,longUrl,title,tags,visits\n' +
        '"2016-05-02T17:49:53+02:00","s.test","%C3%BCx","https://s.test/%C3%BCx","https://e.com/","A, B","a|b",5\n',
    ],
    [
      {
        url: 'https://e.com/',
        title: 'A, B',
        tags: ['a', 'b'],
        created_at: '2016-05-02T15:49:53.000Z',
        forward_query: true,
        hits: 5,
        aliases: ['üx'],
      },
    ],
  ],
  [
    'JSON Lines',
    'golink',
    [
      '{"Short":"Wiki","Long":"https://e.com/w/{{.Path}}","Created":"2024-05-02T15:49:53Z","LastEdit":"2024-05-02T15:49:53Z","Owner":"a@e.com"}\n' +
        '{"Short":"docs","Long":"https://e.com/d{{with .Path}}/{{.}}{{end}}","Created":"2024-05-02T15:49:53Z"}\n' +
        '{"Short":"top","Long":"https://e.com/#top","Created":"2024-05-02T15:49:53Z"}\n',
    ],
    [
      { url: 'https://e.com/w/', forward_path: 'append', aliases_any_case: ['Wiki'] },
      { url: 'https://e.com/d', forward_path: 'append', aliases_any_case: ['docs'] },
      { url: 'https://e.com/#top', aliases_any_case: ['top'] },
    ].map((line) => ({ ...line, created_at: '2024-05-02T15:49:53.000Z' })),
  ],
  [
    'mysqldump',
    'yourls',
    [
      `/*M!999999\\- enable the sandbox mode */\n-- MariaDB dump\n/*!40101 SET x */;\n` +
        `DROP TABLE IF EXISTS \`yourls_url\`;\n${YOURLS_TABLE}\nLOCK TABLES \`x\` WRITE;\n` +
        `INSERT INTO \`yourls_log\` VALUES (1,'2020-01-01 00:00:00','1','x','y','::1','DE');\n` +
        `INSERT INTO \`yourls_url\` VALUES\n${YOURLS_VALUES};\nUNLOCK TABLES;\n`,
    ],
    [YOURLS_LINE],
  ],
  [
    'phpMyAdmin dump',
    'yourls',
    [
      '-- phpMyAdmin SQL Dump\nSET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";\n' +
        'INSERT INTO `yourls_url` (`keyword`, `url`, `title`, `timestamp`, `ip`, `clicks`) VALUES\n' +
        `${YOURLS_VALUES};\n`,
    ],
    [YOURLS_LINE],
  ],
  [
    'stats JSON',
    'yourls',
    [
      JSON.stringify({
        links: {
          link_1: {
            shorturl: 'http://sho.rt/1',
            url: YOURLS_LINE.url,
            title: YOURLS_LINE.title,
            timestamp: '2022-04-14 08:28:57',
            ip: '::1',
            clicks: '10',
          },
        },
        stats: { total_links: '1' },
      }),
    ],
    [YOURLS_LINE],
  ],
  [
    'plugin CSV',
    'yourls',
    ['source,target,hits\r\n/my-key/,https://e.com/,7\r\n'],
    [{ url: 'https://e.com/', hits: 7, aliases: ['my-key'] }],
  ],
  [
    'REST',
    'kutt',
    [
      JSON.stringify({
        total: 1,
        data: [
          {
            id: '7d3f',
            address: 'aBc123',
            banned: false,
            password: false,
            description: 'tab\there',
            created_at: '2022-04-14T08:28:57.155Z',
            expire_in: '2030-01-02 03:04:05',
            target: 'https://example.com/',
            visit_count: 3,
            domain: null,
            link: 'https://k.test/aBc123',
          },
        ],
      }),
    ],
    [KUTT_LINE],
  ],
  [
    'pg_dump',
    'kutt',
    [
      '--\n-- PostgreSQL database dump\n--\nSET statement_timeout = 0;\n' +
        'COPY public.domains (id, address) FROM stdin;\n1\tk.test\n\\.\n' +
        'COPY public.links (id, address, description, target, visit_count, banned, password, ' +
        'created_at, expire_in, domain_id) FROM stdin;\n' +
        '1\taBc123\ttab\\there\thttps://example.com/\t3\tf\t\\N\t2022-04-14 08:28:57.155+00\t' +
        '2030-01-02 03:04:05+00\t1\n\\.\nSELECT 1;\n',
    ],
    [KUTT_LINE],
  ],
  [
    'SQLite',
    'kutt',
    [
      sqliteOf(
        'CREATE TABLE domains (id INTEGER, address TEXT)',
        `CREATE TABLE links (id INTEGER, address TEXT, description TEXT, target TEXT,
         visit_count INTEGER, banned INTEGER, password TEXT, created_at TEXT, expire_in TEXT,
         domain_id INTEGER)`,
        `INSERT INTO links VALUES (1, 'aBc123', 'tab\there', 'https://example.com/', 3, 0, NULL,
         '2022-04-14 08:28:57.155', '2030-01-02 03:04:05', NULL)`,
      ),
    ],
    [KUTT_LINE],
  ],
  [
    'SQLite',
    'chhoto',
    [
      sqliteOf(
        `CREATE TABLE urls (id INTEGER, long_url TEXT, short_url TEXT, hits INTEGER,
         expiry_time INTEGER NOT NULL DEFAULT 0)`,
        "INSERT INTO urls VALUES (1, 'https://e.com/', 'adjective-name', 5, 0)",
      ),
    ],
    [{ url: 'https://e.com/', hits: 5, aliases: ['adjective-name'] }],
  ],
  [
    'JSON',
    'chhoto',
    [
      JSON.stringify([
        {
          shortlink: 'a-b',
          longlink: 'https://e.com/',
          hits: 5,
          expiry_time: 1893456000,
          notes: 'n',
        },
      ]),
    ],
    [
      {
        url: 'https://e.com/',
        note: 'n',
        expires_at: '2030-01-01T00:00:00.000Z',
        hits: 5,
        aliases: ['a-b'],
      },
    ],
  ],
  [
    'export',
    'sink',
    [
      JSON.stringify({
        version: '1.0',
        links: [
          { id: 'x', url: 'https://e.com/', slug: 'My-Slug', createdAt: 1700000000, comment: 'c' },
        ],
        list_complete: true,
      }),
    ],
    [
      {
        url: 'https://e.com/',
        note: 'c',
        created_at: '2023-11-14T22:13:20.000Z',
        aliases_any_case: ['My-Slug'],
      },
    ],
  ],
  [
    'API',
    'bitly',
    [
      '{"links":[{"id":"own.test/abc","link":"https://own.test/abc","long_url":"https://e.com/",' +
        '"title":"a\u0001b","created_at":"2020-01-01T00:00:00+0000","archived":true,"tags":[],' +
        '"custom_bitlinks":["https://own.test/Custom","https://bit.ly/other"]}]}\n{"links":[]}',
    ],
    [
      {
        url: 'https://e.com/',
        title: 'a b',
        tags: ['archived'],
        created_at: '2020-01-01T00:00:00.000Z',
        aliases: ['abc', 'Custom'],
      },
    ],
  ],
  [
    'CSV with custom links',
    'bitly',
    [
      'bitlink,long_url,title,custom_bitlinks\n' +
        'https://bit.ly/3x,https://e.com/1,One,own.test/one|https://own.test/Two\n' +
        'https://own.test/ab,https://e.com/2,,"[""own.test/three"", ""own.test/ab""]"\n' +
        'https://own.test/cd,https://e.com/3,,four\n' +
        'https://own.test/ef,https://e.com/4,,\n',
    ],
    [
      { url: 'https://e.com/1', title: 'One', aliases: ['one', 'Two'] },
      { url: 'https://e.com/2', aliases: ['ab', 'three'] },
      { url: 'https://e.com/3', aliases: ['cd', 'four'] },
      { url: 'https://e.com/4', aliases: ['ef'] },
    ],
  ],
  [
    'CSV',
    'dub',
    [
      'Short link,Destination URL,Clicks,Created at,Tags\n' +
        `https://d.test/'=x,'=https,1,2024-01-01T00:00:00.000Z,"a, b"\n`.replace(
          "'=https",
          'https://e.com',
        ),
    ],
    [
      {
        url: 'https://e.com',
        tags: ['a', 'b'],
        created_at: '2024-01-01T00:00:00.000Z',
        hits: 1,
        aliases: ["'=x"],
      },
    ],
  ],
  [
    'API',
    'dub',
    [
      JSON.stringify([
        { domain: 'd.test', key: 'a/b', url: 'https://e.com', clicks: 2, tags: [{ name: 't' }] },
      ]),
    ],
    [{ url: 'https://e.com', tags: ['t'], hits: 2, aliases: ['a/b'] }],
  ],
  [
    'API',
    'shortio',
    [
      JSON.stringify({
        links: [
          {
            originalURL: 'https://e.com',
            path: 'a.b',
            idString: 'x',
            shortURL: 'https://s.test/a.b',
            expiresAt: '2030-01-01T00:00:00.000Z',
            expiredURL: 'https://e.com/over',
          },
        ],
      }),
    ],
    [
      {
        url: 'https://e.com',
        expired_url: 'https://e.com/over',
        expires_at: '2030-01-01T00:00:00.000Z',
        aliases: ['a.b'],
      },
    ],
  ],
  [
    'API',
    'rebrandly',
    [
      JSON.stringify([
        {
          id: 'x',
          title: 't',
          slashtag: 'sale26',
          destination: 'https://e.com',
          shortUrl: 'r.test/sale26',
          domain: { id: 'y', fullName: 'r.test' },
          clicks: 3,
          forwardParameters: true,
        },
      ]),
    ],
    [{ code: 'sale26', url: 'https://e.com', title: 't', forward_query: true, hits: 3 }],
  ],
  [
    'rows',
    'polr',
    ['Short URL,Long URL,Secret key,Clicks\nend,https://e.com,k3y,1\n'],
    [{ url: 'https://e.com', hits: 1, aliases: ['end/k3y'] }],
  ],
  [
    'UTF-16 with a semicolon',
    'csv',
    [
      new Uint8Array([
        0xff,
        0xfe,
        ...new Uint8Array(
          new Uint16Array(
            [...'URL;Slug;Title\r\nhttps://e.com;abcdef;Grüße\r\n'].map((sign) =>
              sign.charCodeAt(0),
            ),
          ).buffer,
        ),
      ]),
    ],
    [{ code: 'abcdef', url: 'https://e.com', title: 'Grüße' }],
  ],
  [
    'Windows-1252 with a line for Excel',
    'csv',
    [Buffer.from('sep=;\r\nURL;Slug;Title\r\nhttps://e.com;abcdef;Gr\xfc\xdfe\r\n', 'latin1')],
    [{ code: 'abcdef', url: 'https://e.com', title: 'Grüße' }],
  ],
  [
    'byte order mark',
    'csv',
    ['\ufeffURL,Slug\nhttps://e.com,abcdef\n'],
    [{ code: 'abcdef', url: 'https://e.com' }],
  ],
]
test.each(SOURCES)('%s of %s is read', async (_, format, contents, lines) => {
  const found = await imported(contents)
  expect(found.format as string).toBe(format)
  expect(found.lines).toEqual(lines as Record<string, unknown>[])
  expect(found.rows).toHaveLength(lines.length)
})
