import { linkCommands } from '../../src/cli/links.ts'
import { parseCode } from '../../src/cli/options.ts'
import type { TestApp } from './app.ts'

/** The commands on links, in the running service. */

export const disableLink = (app: TestApp, code: string, reason: string): Promise<string> =>
  linkCommands.disableCode(app.administration, { code: parseCode(code), reason })

export const enableLink = (app: TestApp, code: string): Promise<string> =>
  linkCommands.enableCode(app.administration, { code: parseCode(code) })

export const listDisabled = (app: TestApp): string =>
  linkCommands.listDisabled(app.administration, { json: true }).text
