import type { TestApp } from './app.ts'
import { Conversation, type Told } from './conversation.ts'

/** Sends a request up to the middle of its body, then does `meanwhile`, then sends the rest. */
export async function slowly(
  app: TestApp,
  { head, body }: { head: string[]; body: string },
  meanwhile: () => Promise<unknown>,
): Promise<Told> {
  using conversation = await Conversation.open(app.url)
  const length = `Content-Length: ${body.length}`
  conversation.send(
    `${[...head, 'Host: hop.test', length, '', ''].join('\r\n')}${body.slice(0, 3)}`,
  )
  // A whole request on another connection: the first one has been let in by then.
  for (let i = 0; i < 20; i++) await app.call('GET', '/-/live')
  await meanwhile()
  conversation.send(body.slice(3))
  return await firstAnswer(conversation)
}

export async function firstAnswer(conversation: Conversation): Promise<Told> {
  const [told] = await conversation.answers(1)
  if (!told) throw new Error('the service closed the connection without an answer')
  return told
}
