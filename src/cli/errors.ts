/** A command cannot be carried out. The message is for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}

/** A report, printed already, names problems: the command ends with this exit code. */
export class ProblemsFound extends Error {
  override readonly name = 'ProblemsFound'
  readonly exitCode: number

  constructor(exitCode = 1) {
    super()
    this.exitCode = exitCode
  }
}
