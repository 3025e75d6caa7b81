/** A command cannot do what it was asked. The message is for the person who typed it. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}
