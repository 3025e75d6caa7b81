import type { Database } from 'bun:sqlite'
import * as linkCommands from '../../src/cli/links.ts'
import { parseCode } from '../../src/cli/options.ts'
import { localWriter } from '../../src/cli/writer.ts'
import type { TestApp } from './app.ts'

/** The commands on links. Each has a connection of its own, beside the running service. */

const command = <Result>(app: TestApp, work: (db: Database) => Result): Result =>
  app.administer(({ db }) => work(db))

export const disableLink = (app: TestApp, code: string, reason: string): Promise<string> =>
  command(app, (db) => {
    const deps = { writer: localWriter(db), clock: () => app.now() }
    return linkCommands.disable(deps, { code: parseCode(code), reason })
  })

export const enableLink = (app: TestApp, code: string): Promise<string> =>
  command(app, (db) => linkCommands.enable({ writer: localWriter(db) }, { code: parseCode(code) }))

export const listDisabled = (app: TestApp): string =>
  command(app, (db) => linkCommands.list(db, { json: true }))
