/** Root may read and write anything: a refusal of rights needs another user. */
const NOBODY = process.getuid?.() === 0 ? '65532' : undefined

/** Words that run a program as a user without rights; none where the tests have none either. */
export const AS_NOBODY: readonly string[] =
  NOBODY === undefined
    ? []
    : ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

/** Gives a folder to that user, with all that is in it. */
export function giveToNobody(folder: string): void {
  if (NOBODY === undefined) return
  const { exitCode, stderr } = Bun.spawnSync(['chown', '-R', NOBODY, folder])
  if (exitCode !== 0) throw new Error(`nothing was given: ${stderr}`)
}
