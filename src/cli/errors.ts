/** A command cannot be carried out. The message is for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}

/** A report, printed already, names problems: the command ends with exit code 1. */
export class ProblemsFound extends Error {
  override readonly name = 'ProblemsFound'
}
