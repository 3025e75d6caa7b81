import type { Database } from 'bun:sqlite'
import * as linkCommands from '../../src/cli/links.ts'
import type { TestApp } from './app.ts'

/** The commands on links. Each has a connection of its own, beside the running service. */

const command = (app: TestApp, work: (db: Database) => string): string =>
  app.administer(({ db }) => work(db))

export const disableLink = (app: TestApp, code: string, reason: string): string =>
  command(app, (db) => linkCommands.disable(db, () => app.now(), { code, reason }))

export const enableLink = (app: TestApp, code: string): string =>
  command(app, (db) => linkCommands.enable(db, { code }))

export const listDisabled = (app: TestApp): string =>
  command(app, (db) => linkCommands.list(db, { json: true }))
