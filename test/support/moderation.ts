import { linkCommands } from '../../src/cli/links.ts'
import type { TestApp } from './app.ts'

/** The commands on links, in the running service. */

export const disableLink = (app: TestApp, code: string, reason: string): Promise<string> =>
  linkCommands.disableCode(app.administration, { link: code, reason })

export const enableLink = (app: TestApp, code: string): Promise<string> =>
  linkCommands.enableCode(app.administration, { link: code })

export const listDisabled = (app: TestApp): string =>
  linkCommands.listDisabled(app.administration, { json: true }).text
