import { afterAll, beforeAll } from 'bun:test'
import { serveMoreDomains } from '../support/app.ts'

/**
 * The tests of these chapters once more, by services that have two more domains. No test uses them:
 * links without a domain, their addresses and the refusals stay as they are.
 */
const CHAPTERS = [
  'aliases',
  'bulk-shorten',
  'caching',
  'create-fields',
  'dashboard-create',
  'dashboard-links',
  'delete',
  'endpoints',
  'hits',
  'import',
  'link-passwords',
  'link-properties',
  'list',
  'lookup',
  'methods',
  'redirect',
  'refusals-links',
  'reserve',
  'resolve',
  'shlink-api',
  'shorten',
  'states',
  'update',
  'visitor-pages',
  'yourls-api',
]

beforeAll(() => serveMoreDomains(true))
afterAll(() => serveMoreDomains(false))

// A query makes another module of the file, whose tests are those of this file.
for (const chapter of CHAPTERS) await import(`./${chapter}.test.ts?more-domains`)
